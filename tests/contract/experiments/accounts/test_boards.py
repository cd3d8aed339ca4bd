"""Boards of projects, on both databases: versions, who sees and changes them, and how they end."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from support.services.access import Calls, Scenario, calls
from support.services.in_process import Running

from resolute.api.experiments.v1 import (
    access_service_pb2,
    roles_service_pb2,
    roles_service_pb2_grpc,
    user_pb2,
)
from resolute.api.experiments.v1 import boards_service_pb2 as pb2
from resolute.api.experiments.v1 import workspaces_service_pb2 as places
from resolute.errors import (
    AlreadyExistsError,
    ConflictError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)
from resolute_experiments.accounts.store import boards

Play = Callable[[Scenario], None]


async def put(of: Calls, project_id: int, name: str, **fields: Any) -> pb2.Board:
    shown = fields if "path" in fields or "report" in fields else {**fields, "report": "text"}
    request = pb2.SetBoardRequest(project_id=project_id, name=name, **shown)
    board: pb2.Board = (await of.boards.SetBoard(request)).board
    return board


async def get(of: Calls, project_id: int, board_id: int, version: int = 0) -> pb2.GetBoardResponse:
    request = pb2.GetBoardRequest(project_id=project_id, board_id=board_id, version=version)
    response: pb2.GetBoardResponse = await of.boards.GetBoard(request)
    return response


async def names(of: Calls, *project_ids: int) -> list[str]:
    listed = await of.boards.ListBoards(pb2.ListBoardsRequest(project_ids=project_ids))
    return [board.name for board in listed.boards]


async def new_project(admin: Calls, workspace: str = "w") -> tuple[int, int]:
    made = await admin.workspace(workspace)
    return made.workspace_id, (await admin.project(made.workspace_id, "p")).project_id


async def token_of(admin: Calls, name: str, **changes: Any) -> tuple[int, str]:
    user = await admin.user(name, **changes)
    issued = await admin.access.CreateToken(access_service_pb2.CreateTokenRequest(user_id=user.user_id))
    return user.user_id, str(issued.bearer_token)


def test_each_change_makes_a_version_and_all_can_be_read(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        _, project = await new_project(admin)
        first = await put(admin, project, "losses", path="compare?trials=1,2")
        assert (first.version, first.path, first.project_name, first.workspace_name) == (
            1,
            "compare?trials=1,2",
            "p",
            "w",
        )
        second = await put(admin, project, "report", board_id=first.board_id, report="# All", based_on=1)
        assert (second.board_id, second.version, second.report) == (first.board_id, 2, "# All")
        latest = await get(admin, project, first.board_id)
        assert latest.board == second
        assert [one.version for one in latest.versions] == [2, 1]
        assert [one.report for one in latest.versions] == ["", ""]
        assert (await get(admin, project, first.board_id, 1)).board.path == first.path
        with pytest.raises(ConflictError, match="is at version 2"):
            await put(admin, project, "report", board_id=first.board_id, based_on=1)
        with pytest.raises(NotFoundError, match="version 7"):
            await get(admin, project, first.board_id, 7)

    play(scenario)


def test_of_many_versions_the_earliest_are_removed(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "KEPT_VERSIONS", 2)

    async def scenario(running: Running, admin: Calls) -> None:
        _, project = await new_project(admin)
        made = await put(admin, project, "b")
        for _ in range(3):
            await put(admin, project, "b", board_id=made.board_id)
        read = await get(admin, project, made.board_id)
        assert [one.version for one in read.versions] == [4, 3]

    play(scenario)


def test_a_change_that_is_sent_again_is_made_once(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        _, project = await new_project(admin)
        request_id = str(uuid.uuid4())
        once = await put(admin, project, "b", request_id=request_id)
        again = await put(admin, project, "b", request_id=request_id)
        assert again == once

    play(scenario)


def test_names_and_contents_are_checked_and_boards_are_bounded(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "MAX_BOARDS", 2)

    async def scenario(running: Running, admin: Calls) -> None:
        _, project = await new_project(admin)
        await put(admin, project, "a")
        other = await put(admin, project, "b")
        with pytest.raises(AlreadyExistsError, match="a board 'a' already"):
            await put(admin, project, "a", board_id=other.board_id)
        with pytest.raises(FailedPreconditionError, match="has 2 boards"):
            await put(admin, project, "c")
        for wrong in (
            {"name": " "},
            {"name": "a", "path": "//elsewhere.example"},
            {"name": "a", "path": "x" * 4001},
            {"name": "a", "report": "x" * 20_001},
            {"name": "a", "report": "\0"},
        ):
            with pytest.raises(InvalidArgumentError):
                await put(admin, project, **wrong)
        with pytest.raises(InvalidArgumentError, match="shows something"):
            await admin.boards.SetBoard(pb2.SetBoardRequest(project_id=project, name="a"))

    play(scenario)


def test_roles_of_the_workspace_decide_who_sees_and_changes_boards(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        workspace, project = await new_project(admin)
        _, elsewhere = await new_project(admin, "other")
        made = await put(admin, project, "seen")
        await put(admin, elsewhere, "unseen")
        user_id, token = await token_of(admin, "ada", role=user_pb2.USER_ROLE_MEMBER)
        async with running.channel(running.user_token()) as channel:
            roles: Any = roles_service_pb2_grpc.RolesServiceStub(channel)
            await roles.AssignRole(
                roles_service_pb2.AssignRoleRequest(
                    user_id=user_id, workspace_id=workspace, role=user_pb2.USER_ROLE_VIEWER
                )
            )
        async with calls(running, token) as ada:
            assert await names(ada) == ["seen"]
            assert (await get(ada, project, made.board_id)).board == made
            for refused in (
                put(ada, project, "mine"),
                ada.boards.DeleteBoard(pb2.DeleteBoardRequest(project_id=project, board_id=made.board_id)),
            ):
                with pytest.raises(PermissionDeniedError):
                    await refused
        # The project that is named decides, so a board of another one is not found by it.
        with pytest.raises(NotFoundError):
            await get(admin, elsewhere, made.board_id)

    play(scenario)


def test_boards_go_with_their_project_and_its_workspace(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        workspace, project = await new_project(admin)
        second = (await admin.project(workspace, "q")).project_id
        await put(admin, project, "a")
        gone = await put(admin, project, "b")
        await put(admin, second, "c")
        await admin.boards.DeleteBoard(pb2.DeleteBoardRequest(project_id=project, board_id=gone.board_id))
        assert await names(admin) == ["a", "c"]
        await admin.places.DeleteProject(places.DeleteProjectRequest(project_id=project))
        assert await names(admin) == ["c"]
        assert await names(admin, second) == ["c"]
        await admin.places.DeleteWorkspace(places.DeleteWorkspaceRequest(workspace_id=workspace))
        assert await names(admin) == []

    play(scenario)
