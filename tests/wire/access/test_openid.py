"""People sign in with a real OpenID provider, from the command line."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jwt
import pytest
from google.protobuf.duration_pb2 import Duration
from support.daemons.openid_provider import CLIENT, Provider, openid_provider
from support.services.access import Calls, calls
from support.services.in_process import Running, serving

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1 import roles_service_pb2, roles_service_pb2_grpc, token_pb2, user_pb2
from resolute.cli.main import run as cli
from resolute.client.connection import device_flow
from resolute.client.connection.device_flow import Confirmation
from resolute.errors import PermissionDeniedError, UnauthenticatedError
from resolute_experiments.accounts.attempts import MOST_FOR_A_PEER
from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.auth.signing_keys import load_or_create_key

SCOPES = ("openid", "profile", "groups")
ACCOUNTS = {
    "1": {"preferred_username": "ada", "groups": ["staff", "vision"]},
    "2": {"preferred_username": "admin", "groups": ["staff"]},
    "3": {"preferred_username": "eve", "groups": ["visitors"]},
}
RETURNED: set[str] = set()
"""The ID tokens that tests got."""


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with openid_provider(ACCOUNTS) as served:
        yield served


def id_token(provider: Provider, subject: str, *, client: str = CLIENT) -> str:
    """Signs somebody in at the provider, by the device flow, for a token that was not returned before.

    The provider's tokens of one second are the same, and each is good for one session.
    """
    while (token := _token(provider, subject, client=client)) in RETURNED:
        pass
    RETURNED.add(token)
    return token


def _token(provider: Provider, subject: str, *, client: str) -> str:
    shown: list[Confirmation] = []

    def confirm(_seconds: float) -> None:  # does not wait between the questions
        if len(shown) == 1:
            provider.confirm(shown[0].complete_url, login=subject)
        assert len(shown) < 5, "the provider does not notice the confirmation"
        shown.append(shown[0])

    known = device_flow.Provider(provider.issuer, client, SCOPES)
    return device_flow.sign_in(known, shown.append, sleep=confirm)


def run(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch, scenario: Any, roles: str
) -> None:
    monkeypatch.setenv("RESOLUTE_OPENID_ISSUER", provider.issuer)
    monkeypatch.setenv("RESOLUTE_OPENID_CLIENT_ID", CLIENT)
    monkeypatch.setenv("RESOLUTE_OPENID_ROLES", roles)

    async def serve() -> None:
        key = load_or_create_key(tmp_path / "data/experiments/signing-key.pem")
        async with (
            serving([BLUEPRINT], tmp_path, key=key) as running,
            calls(running, running.user_token(name="admin")) as admin,
        ):
            await scenario(running, admin)

    asyncio.run(asyncio.wait_for(serve(), 120))


async def signed_in_anew(provider: Provider, subject: str = "1", *, client: str = CLIENT) -> str:
    """An ID token, by a thread that the loop does not wait for."""
    return await asyncio.to_thread(id_token, provider, subject, client=client)


async def log_in(admin: Calls, token: str) -> pb2.LoginWithIdTokenResponse:
    request = pb2.LoginWithIdTokenRequest(id_token=token)
    response: pb2.LoginWithIdTokenResponse = await admin.access.LoginWithIdToken(request)
    return response


def test_an_id_token_begins_one_session_and_a_start_changes_nothing(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    # From before the start of the services, as one is that a provider issues whose clock is behind.
    used, unused = id_token(provider, "1"), id_token(provider, "1")

    async def refused(admin: Calls, token: str) -> None:
        with pytest.raises(UnauthenticatedError, match="used before"):
            await log_in(admin, token)

    async def first(running: Running, admin: Calls) -> None:
        answers = await asyncio.gather(*(log_in(admin, used) for _ in range(3)), return_exceptions=True)
        sessions = [answer for answer in answers if isinstance(answer, pb2.LoginWithIdTokenResponse)]
        assert len(sessions) == 1, answers
        await refused(admin, used)

    async def after_a_restart(running: Running, admin: Calls) -> None:
        await refused(admin, used)
        assert (await log_in(admin, unused)).bearer_token

    run(tmp_path, provider, monkeypatch, first, "staff=editor")
    run(tmp_path, provider, monkeypatch, after_a_restart, "staff=editor")


def test_groups_give_roles_anew_at_each_sign_in(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def first(running: Running, admin: Calls) -> None:
        await admin.workspace("pictures")
        methods = await admin.access.GetSignInMethods(pb2.GetSignInMethodsRequest())
        assert methods.openid_provider.issuer == provider.issuer
        response = await log_in(admin, await signed_in_anew(provider))
        async with calls(running, response.bearer_token) as ada:
            user = (await ada.access.GetCurrentUser(pb2.GetCurrentUserRequest())).user
        assert (user.name, user.role, user.has_password) == ("ada", user_pb2.USER_ROLE_MEMBER, False)
        assert await workspace_roles(running) == [("pictures", user_pb2.USER_ROLE_EDITOR)]

    async def later(running: Running, admin: Calls) -> None:
        response = await log_in(admin, await signed_in_anew(provider))
        async with calls(running, response.bearer_token) as ada:
            user = (await ada.access.GetCurrentUser(pb2.GetCurrentUserRequest())).user
        assert (user.name, user.role) == ("ada", user_pb2.USER_ROLE_EDITOR)
        assert await workspace_roles(running) == []

    run(tmp_path, provider, monkeypatch, first, "vision=pictures:editor,staff=member")
    run(tmp_path, provider, monkeypatch, later, "others=pictures:editor,staff=viewer,vision=editor")


async def workspace_roles(running: Running) -> list[tuple[str, int]]:
    async with running.channel(running.user_token(name="admin")) as channel:
        stub: Any = roles_service_pb2_grpc.RolesServiceStub(channel)
        found = (await stub.ListRoles(roles_service_pb2.ListRolesRequest())).roles
    return [(one.workspace_name, one.role) for one in found if one.user_name == "ada"]


def test_nothing_outlives_a_sign_in_and_tokens_and_roles_end_with_the_last_group(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    created: list[str] = []

    async def first(running: Running, admin: Calls) -> None:
        await admin.workspace("pictures")
        signed_in = await log_in(admin, await signed_in_anew(provider))
        async with calls(running, signed_in.bearer_token) as ada:
            number = (await ada.access.GetCurrentUser(pb2.GetCurrentUserRequest())).user.user_id
            request = pb2.CreateTokenRequest(user_id=number, ttl=Duration(seconds=300 * 86_400))
            made = await ada.access.CreateToken(request)
            kinds = pb2.ListTokensRequest(kinds=[token_pb2.TOKEN_KIND_SIGN_IN])
            listed = (await ada.access.ListTokens(kinds)).tokens
            password = pb2.SetPasswordRequest(user_id=number, password="what only ada knows")
            with pytest.raises(PermissionDeniedError, match="another admin may set a password"):
                await ada.access.SetPassword(password)
        assert [one.token_id for one in listed] == [signed_in.token.token_id]
        assert made.token.expire_time == signed_in.token.expire_time
        created.append(made.bearer_token)

    async def without_the_claim(running: Running, admin: Calls) -> None:
        with pytest.raises(PermissionDeniedError, match="the ID token has no claim 'teams'"):
            await log_in(admin, await signed_in_anew(provider))
        async with calls(running, created[0]) as ada:
            user = (await ada.access.GetCurrentUser(pb2.GetCurrentUserRequest())).user
        assert user.role == user_pb2.USER_ROLE_EDITOR
        assert await workspace_roles(running) == [("pictures", user_pb2.USER_ROLE_ADMIN)]

    async def without_a_group(running: Running, admin: Calls) -> None:
        with pytest.raises(PermissionDeniedError, match="none of the groups of 'ada'"):
            await log_in(admin, await signed_in_anew(provider))
        async with calls(running, created[0]) as ada:
            with pytest.raises(UnauthenticatedError):
                await ada.access.GetCurrentUser(pb2.GetCurrentUserRequest())
        (user,) = (await admin.access.ListUsers(pb2.ListUsersRequest(names=["ada"]))).users
        assert (user.role, user.active) == (user_pb2.USER_ROLE_MEMBER, True)
        assert await workspace_roles(running) == []
        # An admin may still give the user another way in.
        password = pb2.SetPasswordRequest(user_id=user.user_id, password="what only ada knows")
        assert (await admin.access.SetPassword(password)).user.has_password

    run(tmp_path, provider, monkeypatch, first, "vision=pictures:admin,staff=editor")
    with monkeypatch.context() as other_claim:
        other_claim.setenv("RESOLUTE_OPENID_GROUPS_CLAIM", "teams")
        run(tmp_path, provider, other_claim, without_the_claim, "vision=pictures:admin,staff=editor")
    run(tmp_path, provider, monkeypatch, without_a_group, "others=pictures:admin,more=editor")


def test_nobody_becomes_another_user_or_gets_in_without_a_role(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        namesake, visitor = [await signed_in_anew(provider, subject) for subject in ("2", "3")]
        others = await signed_in_anew(provider, client="another")
        good = await signed_in_anew(provider)
        head, body, signature = good.split(".")
        key = {"kid": jwt.get_unverified_header(good)["kid"], "alg": "ES256"}  # that of an RSA key
        confused = base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")
        with pytest.raises(PermissionDeniedError, match="user admin exists in this cluster"):
            await log_in(admin, namesake)
        with pytest.raises(PermissionDeniedError, match="none of the groups of 'eve'"):
            await log_in(admin, visitor)
        forged = [f"{head}.{body}.{signature[::-1]}", f"{head}.{body}.", f"{confused}.{body}.{signature}"]
        for wrong in (others, *forged, "a guess"):
            with pytest.raises(UnauthenticatedError):
                await log_in(admin, wrong)
        request = pb2.LoginWithIdTokenRequest(id_token=good, nonce="of another sign-in")
        with pytest.raises(UnauthenticatedError, match="another sign-in"):
            await admin.access.LoginWithIdToken(request)
        # Wrong tokens do not count: behind a gateway all people have the same address.
        for _ in range(MOST_FOR_A_PEER):
            with pytest.raises(UnauthenticatedError):
                await log_in(admin, "a guess")
        assert (await log_in(admin, good)).bearer_token

    run(tmp_path, provider, monkeypatch, scenario, "staff=editor")


def test_the_command_logs_in_and_keeps_the_token(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RESOLUTE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RESOLUTE_TOKEN", raising=False)
    said: list[str] = []

    def confirm(_seconds: float) -> None:
        said.append(capfd.readouterr().err)
        if len(said) == 1:
            (url,) = re.findall(r"Open (\S+)", said[0])
            assert provider.confirm(url, login="1")
        assert len(said) < 5, "the provider does not notice the confirmation"

    monkeypatch.setattr(device_flow, "sign_in", partial(device_flow.sign_in, sleep=confirm))

    async def scenario(running: Running, admin: Calls) -> None:
        for command, expected in ((["login", "--sso"], " as ada\n"), (["user", "whoami"], "ada\n")):
            code = await asyncio.to_thread(cli, ["-m", running.address, *command], program="resolute")
            assert (code, capfd.readouterr().out.endswith(expected)) == (0, True)

    run(tmp_path, provider, monkeypatch, scenario, "staff=editor")
