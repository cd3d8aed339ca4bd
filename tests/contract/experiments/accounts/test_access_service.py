"""Users, tokens, workspaces, projects and templates over the wire, on both databases."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from support.services.access import Calls, Scenario, calls
from support.services.in_process import Running

from resolute.api.experiments.v1 import (
    access_service_pb2,
    cluster_service_pb2,
    project_pb2,
    token_pb2,
    user_pb2,
    workspace_pb2,
    workspaces_service_pb2,
)
from resolute.contracts.times import to_duration
from resolute.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from resolute_serving.context import Role

VIEWER, EDITOR = user_pb2.USER_ROLE_VIEWER, user_pb2.USER_ROLE_EDITOR
_access, _places, _cluster = access_service_pb2, workspaces_service_pb2, cluster_service_pb2


def test_creating_calls_that_are_repeated_create_once(play: Callable[[Scenario], None]) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        for create in (
            lambda request_id: admin.user("ada", request_id=request_id),
            lambda request_id: admin.workspace("vision", request_id=request_id),
            lambda request_id: admin.project(1, "cats", request_id=request_id),
        ):
            request_id = str(uuid.uuid4())
            assert await create(request_id) == await create(request_id)
            with pytest.raises(AlreadyExistsError):
                await create(str(uuid.uuid4()))
        request_id = str(uuid.uuid4())
        await admin.user("eve", request_id=request_id)
        with pytest.raises(AlreadyExistsError, match=request_id):
            await admin.user("eva", request_id=request_id)

    play(scenario)


def test_what_is_created_for_others_is_theirs_from_the_first_call(play: Callable[[Scenario], None]) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        ada = await admin.user("ada")
        gone = await admin.user("gone", inactive=True)
        assert not gone.active
        vision = await admin.workspace("vision", owner_id=ada.user_id)
        cats = await admin.project(vision.workspace_id, "cats", owner_id=gone.user_id, notes="# Plan")
        assert (vision.owner_name, cats.owner_name, cats.notes) == ("ada", "gone", "# Plan")
        issued = await admin.access.CreateToken(_access.CreateTokenRequest(user_id=ada.user_id))
        async with calls(running, issued.bearer_token) as own:
            assert (await own.workspace("text", owner_id=ada.user_id)).owner_name == "ada"
            with pytest.raises(PermissionDeniedError, match="ask an admin"):
                await own.workspace("speech", owner_id=gone.user_id)
        with pytest.raises(NotFoundError):
            await admin.workspace("speech", owner_id=999)

    play(scenario)


def test_a_repeated_token_is_the_same_token(play: Callable[[Scenario], None]) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        ada = await admin.user("ada")
        request = _access.CreateTokenRequest(
            request_id=str(uuid.uuid4()), user_id=ada.user_id, ttl=to_duration(600), description="ci"
        )
        first, again = [await admin.access.CreateToken(request) for _ in range(2)]
        assert first.token == again.token
        assert (first.token.user_id, first.token.user_name) == (ada.user_id, "ada")
        for issued in (first, again):
            async with calls(running, issued.bearer_token) as own:
                caller = (await own.access.GetCurrentUser(_access.GetCurrentUserRequest())).user
                assert caller == ada
        await admin.access.RevokeToken(_access.RevokeTokenRequest(token_id=first.token.token_id))
        listed = await admin.access.ListTokens(_access.ListTokensRequest(user_ids=[ada.user_id]))
        assert [(token.token_id, token.revoked) for token in listed.tokens] == [(first.token.token_id, True)]
        for ttl in (0.5, 366 * 86_400):
            request = _access.CreateTokenRequest(ttl=to_duration(ttl))
            with pytest.raises(InvalidArgumentError, match="ttl is"):
                await admin.access.CreateToken(request)

    play(scenario)


def test_users_describe_their_own_tokens_anew_and_admins_those_of_everybody(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        tokens = {}
        for name in ("ada", "eve"):
            user = await admin.user(name)
            request = _access.CreateTokenRequest(user_id=user.user_id, description="ci")
            tokens[name] = await admin.access.CreateToken(request)

        def described(name: str, text: str) -> Any:
            wanted = token_pb2.Token(token_id=tokens[name].token.token_id, description=text)
            return _access.UpdateTokenRequest(token=wanted, update_mask=FieldMask(paths=["description"]))

        async with calls(running, tokens["ada"].bearer_token) as own:
            changed = (await own.access.UpdateToken(described("ada", "laptop"))).token
            expected = tokens["ada"].token
            expected.description = "laptop"
            assert changed == expected
            with pytest.raises(PermissionDeniedError, match="change tokens of user eve"):
                await own.access.UpdateToken(described("eve", "mine"))
        assert (await admin.access.UpdateToken(described("eve", "hers"))).token.description == "hers"
        rows = (await admin.access.ListAuditRows(_access.ListAuditRowsRequest(actions=["update_token"]))).rows
        assert [row.resource for row in rows] == ["user eve", "user ada"]
        for wrong, words in (
            (_access.UpdateTokenRequest(token=expected), "update_mask is empty"),
            (described("ada", "x" * 1001), "1000 are allowed"),
        ):
            with pytest.raises(InvalidArgumentError, match=words):
                await admin.access.UpdateToken(wrong)

    play(scenario)


def test_users_are_updated_by_mask_and_etag_and_lose_their_tokens(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        ada = await admin.user("ada")
        issued = await admin.access.CreateToken(_access.CreateTokenRequest(user_id=ada.user_id))
        wanted = user_pb2.User(user_id=ada.user_id, name="ada.l", role=VIEWER)

        def request(*paths: str, etag: str = "") -> Any:
            return _access.UpdateUserRequest(user=wanted, update_mask=FieldMask(paths=paths), etag=etag)

        for paths in ((), ("name", "password")):
            with pytest.raises(InvalidArgumentError, match="active, name, role"):
                await admin.access.UpdateUser(request(*paths))
        renamed = (await admin.access.UpdateUser(request("name", etag=ada.etag))).user
        assert (renamed.name, renamed.role, renamed.active) == ("ada.l", EDITOR, True)
        with pytest.raises(ConflictError, match="changed meanwhile"):
            await admin.access.UpdateUser(request("role", etag=ada.etag))
        assert (await admin.access.UpdateUser(request("role", etag=renamed.etag))).user.role == VIEWER
        keys = await admin.access.GetVerificationKeys(_access.GetVerificationKeysRequest())
        assert issued.token.token_id in keys.revoked_token_ids
        async with calls(running, issued.bearer_token) as own:
            with pytest.raises(UnauthenticatedError, match="revoked"):
                await own.access.GetCurrentUser(_access.GetCurrentUserRequest())
        rows = await admin.access.ListAuditRows(_access.ListAuditRowsRequest(actions=["update_user"]))
        assert [row.resource for row in rows.rows] == ["user ada.l", "user ada"]
        assert {row.user_id for row in rows.rows} == {1}

    play(scenario)


def test_lists_are_ordered_filtered_and_paged(play: Callable[[Scenario], None]) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        ids = {name: (await admin.user(name)).user_id for name in ("ada", "bob", "cyd")}
        await admin.user("vic", role=VIEWER)
        request = _access.ListUsersRequest(page_size=2, order_by="name desc", roles=[EDITOR])
        names: list[str] = []
        while True:
            page = await admin.access.ListUsers(request)
            names += [user.name for user in page.users]
            request.page_token = page.next_page_token
            if not request.page_token:
                break
        assert names == ["determined", "cyd", "bob", "ada"]
        found = await admin.access.ListUsers(_access.ListUsersRequest(names=["bob", "nobody"]))
        assert [user.user_id for user in found.users] == [ids["bob"]]
        by_id = _access.ListUsersRequest(user_ids=[ids["bob"], ids["cyd"], 10**6])
        assert [user.name for user in (await admin.access.ListUsers(by_id)).users] == ["bob", "cyd"]
        inactive = await admin.access.ListUsers(_access.ListUsersRequest(active=False))
        assert list(inactive.users) == []
        with pytest.raises(InvalidArgumentError, match="create_time, name"):
            await admin.access.ListUsers(_access.ListUsersRequest(order_by="role"))
        with pytest.raises(InvalidArgumentError, match="100 are allowed"):
            await admin.access.ListUsers(_access.ListUsersRequest(names=["x"] * 101))

    play(scenario)


def test_audit_rows_are_filtered_by_time_actor_and_resource(play: Callable[[Scenario], None]) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        await admin.workspace("vision")
        await admin.workspace("audio")

        async def found(**filters: Any) -> list[str]:
            rows = await admin.access.ListAuditRows(_access.ListAuditRowsRequest(**filters))
            return [row.resource for row in rows.rows]

        assert await found() == ["workspace audio", "workspace vision"]
        assert await found(order_by="time") == ["workspace vision", "workspace audio"]
        assert await found(actors=["admin"], resources=["workspace audio"]) == ["workspace audio"]
        assert await found(actors=["ada"]) == await found(user_ids=[2]) == []
        later = Timestamp()
        later.FromDatetime(datetime(2100, 1, 1, tzinfo=timezone.utc))
        assert await found(start_time=later) == []
        assert len(await found(end_time=later, user_ids=[1])) == 2

    play(scenario)


def test_workspaces_are_renamed_bounded_and_found_by_name(play: Callable[[Scenario], None]) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        vision = await admin.workspace("vision")
        assert (vision.owner_id, vision.owner_name, vision.HasField("quota")) == (1, "admin", True)
        assert not vision.quota.HasField("slots")
        wanted = workspace_pb2.Workspace(workspace_id=vision.workspace_id, name="images", archived=True)
        mask = FieldMask(paths=["name", "archived"])
        request = _places.UpdateWorkspaceRequest(workspace=wanted, update_mask=mask, etag=vision.etag)
        images = (await admin.places.UpdateWorkspace(request)).workspace
        assert (images.name, images.archived) == ("images", True)
        with pytest.raises(ConflictError):
            await admin.places.UpdateWorkspace(request)
        quota = workspace_pb2.Quota(slots=3)
        bounded = _places.SetQuotaRequest(workspace_id=vision.workspace_id, quota=quota, etag=images.etag)
        assert (await admin.places.SetQuota(bounded)).workspace.quota == quota
        bounded = _places.SetQuotaRequest(
            workspace_id=vision.workspace_id, quota=workspace_pb2.Quota(slots=0)
        )
        with pytest.raises(InvalidArgumentError, match=r"quota\.slots must be above 0"):
            await admin.places.SetQuota(bounded)
        listed = await admin.places.ListWorkspaces(_places.ListWorkspacesRequest(names=["images"]))
        assert [workspace.workspace_id for workspace in listed.workspaces] == [vision.workspace_id]
        open_ones = await admin.places.ListWorkspaces(
            _places.ListWorkspacesRequest(archived=False, order_by="create_time desc")
        )
        assert [workspace.name for workspace in open_ones.workspaces] == ["Uncategorized"]

    play(scenario)


def test_projects_are_updated_by_mask_and_listed_by_workspace(play: Callable[[Scenario], None]) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        vision, audio = await admin.workspace("vision"), await admin.workspace("audio")
        cats = await admin.project(vision.workspace_id, "cats", description="felines")
        await admin.project(audio.workspace_id, "cats")
        wanted = project_pb2.Project(project_id=cats.project_id, notes="n")
        request = _places.UpdateProjectRequest(
            project=wanted, update_mask=FieldMask(paths=["notes"]), etag=cats.etag
        )
        changed = (await admin.places.UpdateProject(request)).project
        assert (changed.name, changed.description, changed.notes) == ("cats", "felines", "n")
        with pytest.raises(ConflictError):
            await admin.places.UpdateProject(request)
        listing: Any = _places.ListProjectsRequest(workspace_ids=[audio.workspace_id], names=["cats"])
        assert [p.workspace_name for p in (await admin.places.ListProjects(listing)).projects] == ["audio"]
        listing = _places.ListProjectsRequest(names=["cats"], page_size=1)
        page = await admin.places.ListProjects(listing)
        listing.page_token = page.next_page_token
        rest = await admin.places.ListProjects(listing)
        found = {project.workspace_id for each in (page, rest) for project in each.projects}
        assert (found, rest.next_page_token) == ({vision.workspace_id, audio.workspace_id}, "")

    play(scenario)


def test_texts_have_a_longest_length(play: Callable[[Scenario], None]) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        with pytest.raises(InvalidArgumentError, match="10000 are allowed"):
            await admin.project(1, "cats", description="x" * 10_001)
        cats = await admin.project(1, "cats")
        wanted = project_pb2.Project(project_id=cats.project_id, notes="x" * 100_001)
        request = _places.UpdateProjectRequest(project=wanted, update_mask=FieldMask(paths=["notes"]))
        with pytest.raises(InvalidArgumentError, match="100000 are allowed"):
            await admin.places.UpdateProject(request)
        with pytest.raises(InvalidArgumentError, match="1000000 are allowed"):
            await admin.cluster.SetTemplate(
                _cluster.SetTemplateRequest(name="a", config_yaml="#" * 1_000_001)
            )

    play(scenario)


def test_templates_are_written_and_listed(play: Callable[[Scenario], None]) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        for name in ("b", "a"):
            request = _cluster.SetTemplateRequest(name=name, config_yaml="max_restarts: 1")
            written = (await admin.cluster.SetTemplate(request)).template
            assert written.HasField("update_time")
        listed = await admin.cluster.ListTemplates(_cluster.ListTemplatesRequest(order_by="name desc"))
        assert [template.name for template in listed.templates] == ["b", "a"]
        listed = await admin.cluster.ListTemplates(_cluster.ListTemplatesRequest(names=["a"]))
        assert [template.name for template in listed.templates] == ["a"]

    play(scenario)


def test_users_see_and_change_only_what_is_their_own(play: Callable[[Scenario], None]) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        ada, bob = await admin.user("ada"), await admin.user("bob")
        for user in (ada, bob):
            await admin.access.CreateToken(_access.CreateTokenRequest(user_id=user.user_id))
        async with calls(running, running.user_token(name="ada", role=Role.EDITOR)) as own:
            listed = await own.access.ListTokens(_access.ListTokensRequest())
            assert [token.user_id for token in listed.tokens] == [ada.user_id]
            for forbidden in (
                own.access.ListTokens(_access.ListTokensRequest(user_ids=[bob.user_id])),
                own.access.CreateToken(_access.CreateTokenRequest(user_id=bob.user_id)),
                own.access.SetPassword(
                    _access.SetPasswordRequest(user_id=bob.user_id, password="longenough")
                ),
            ):
                with pytest.raises(PermissionDeniedError):
                    await forbidden
            request = _access.SetPasswordRequest(user_id=ada.user_id, password="longenough")
            assert (await own.access.SetPassword(request)).user.has_password
        login = _access.LoginRequest(user_name="ada", password="longenough")
        assert (await admin.access.Login(login)).token.user_id == ada.user_id
        with pytest.raises(UnauthenticatedError):
            await admin.access.Login(_access.LoginRequest(user_name="ada", password="wrong"))

    play(scenario)
