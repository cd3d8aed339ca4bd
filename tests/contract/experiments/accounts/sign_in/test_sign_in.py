"""Sign-in, the tokens that come of it, and what is recorded of refusals, on both databases."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest
from support.clocks import OffsetClock
from support.services.access import Calls, Scenario, calls
from support.services.in_process import Running

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1 import (
    experiments_service_pb2,
    experiments_service_pb2_grpc,
    token_pb2,
    user_pb2,
)
from resolute.contracts.times import to_duration
from resolute.contracts.values import from_value
from resolute.errors import InvalidArgumentError, PermissionDeniedError, QuotaError, UnauthenticatedError
from resolute_experiments.accounts.store import users
from resolute_serving.context import ServiceAccount

Play = Callable[[Scenario], None]
PASSWORD = "correct horse"


async def ada_signs_in(admin: Calls, **fields: Any) -> pb2.LoginResponse:
    """Signs ada in, whose user is made first if there is none."""
    found = await admin.access.ListUsers(pb2.ListUsersRequest(names=["ada"]))
    if not found.users:
        ada = await admin.user("ada")
        await admin.access.SetPassword(pb2.SetPasswordRequest(user_id=ada.user_id, password=PASSWORD))
    request = pb2.LoginRequest(user_name="ada", **{"password": PASSWORD, **fields})
    response: pb2.LoginResponse = await admin.access.Login(request)
    return response


async def audit_rows(running: Running, admin: Calls, *actions: str) -> list[tuple[str, str, str, Any]]:
    """Actor, action, resource and count of the rows of refusals."""
    service: Any = running.services[0]
    await service._refusal_log.write()
    rows = (await admin.access.ListAuditRows(pb2.ListAuditRowsRequest(actions=actions))).rows
    counts: Counter[tuple[str, str, str]] = Counter()
    for row in rows:  # the service writes some of them meanwhile by itself
        counts[row.actor, row.action, row.resource] += from_value(row.detail)["count"]
    return [(*key, count) for key, count in counts.items()]


async def caller(running: Running, token: str) -> str:
    """Name of the user that a token speaks for."""
    async with calls(running, token) as own:
        return str((await own.access.GetCurrentUser(pb2.GetCurrentUserRequest())).user.name)


async def to_the_end(responses: Any) -> None:
    """Reads a stream until it ends."""
    async for _ in responses:
        pass


@pytest.mark.parametrize("password", ["", "admin", "password", "resolute", "determined"])
def test_there_is_no_default_password(play: Play, password: str) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        await admin.user("grace")
        names = [user.name for user in (await admin.access.ListUsers(pb2.ListUsersRequest())).users]
        assert {"admin", "grace"} <= set(names)
        for name in names:
            with pytest.raises((UnauthenticatedError, InvalidArgumentError)):
                await admin.access.Login(pb2.LoginRequest(user_name=name, password=password))

    play(scenario)


def test_of_a_burst_of_wrong_passwords_five_are_tried_and_all_are_recorded(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        await ada_signs_in(admin)

        async def guess(number: int) -> type[Exception] | None:
            try:
                await ada_signs_in(admin, password=f"guess {number}")
            except (UnauthenticatedError, QuotaError) as error:
                return type(error)
            return None

        outcomes = await asyncio.gather(*(guess(number) for number in range(35)))
        assert outcomes.count(UnauthenticatedError) == 5
        assert outcomes.count(QuotaError) == 30
        assert sorted(await audit_rows(running, admin, "login_failed", "login_limited")) == [
            ("admin", "login_failed", "user ada", 5),
            ("admin", "login_limited", "user ada", 30),
        ]

    play(scenario)


def test_nobody_locks_a_user_out_who_has_signed_in_from_the_device_before(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        earlier = await ada_signs_in(admin)
        for number in range(6):
            with pytest.raises((UnauthenticatedError, QuotaError)):
                await ada_signs_in(admin, password=f"guess {number}")
        with pytest.raises(QuotaError, match="signed in as this user before are not affected"):
            await ada_signs_in(admin)
        for forged in ("", "nonsense", earlier.bearer_token):
            with pytest.raises(QuotaError):
                await ada_signs_in(admin, device_token=forged)
        again = await ada_signs_in(admin, device_token=earlier.device_token)
        assert await caller(running, again.bearer_token) == "ada"
        with pytest.raises(UnauthenticatedError):
            await caller(running, again.device_token)

    play(scenario)


def test_a_token_that_was_issued_with_a_token_ends_with_it(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        ada = await admin.user("ada")
        first = await admin.access.CreateToken(
            pb2.CreateTokenRequest(user_id=ada.user_id, ttl=to_duration(600), description="first")
        )
        async with calls(running, first.bearer_token) as own:
            second = await own.access.CreateToken(pb2.CreateTokenRequest(ttl=to_duration(86_400)))
        assert second.token.parent_token_id == first.token.token_id
        assert second.token.expire_time == first.token.expire_time
        async with calls(running, second.bearer_token) as own:
            third = await own.access.CreateToken(pb2.CreateTokenRequest(ttl=to_duration(60)))
        assert await caller(running, third.bearer_token) == "ada"
        await admin.access.RevokeToken(pb2.RevokeTokenRequest(token_id=first.token.token_id))
        for token in (first, second, third):
            with pytest.raises(UnauthenticatedError, match="revoked"):
                await caller(running, token.bearer_token)

    play(scenario)


def test_a_token_that_was_issued_after_a_sign_in_has_its_own_expiry(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        session = await ada_signs_in(admin)
        assert session.token.kind == token_pb2.TOKEN_KIND_SIGN_IN
        year = to_duration(365 * 86_400)
        async with calls(running, session.bearer_token) as own:
            issued = await own.access.CreateToken(pb2.CreateTokenRequest(ttl=year))
            await own.access.RevokeToken(pb2.RevokeTokenRequest(token_id=session.token.token_id))
        assert (issued.token.kind, issued.token.parent_token_id) == (token_pb2.TOKEN_KIND_ACCESS, "")
        assert issued.token.expire_time.seconds > session.token.expire_time.seconds
        with pytest.raises(UnauthenticatedError, match="revoked"):
            await caller(running, session.bearer_token)
        assert await caller(running, issued.bearer_token) == "ada"

    play(scenario)


def test_the_token_of_the_operator_is_listed_named_stable_and_revocable(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        service: Any = running.services[0]
        first, second = [await service.operator_token(description="operator, in HOME") for _ in range(2)]
        request = pb2.ListTokensRequest(kinds=[token_pb2.TOKEN_KIND_OPERATOR])
        (listed,) = (await admin.access.ListTokens(request)).tokens
        assert (listed.user_name, listed.description) == ("admin", "operator, in HOME")
        assert await caller(running, first) == await caller(running, second) == "admin"
        await admin.access.RevokeToken(pb2.RevokeTokenRequest(token_id=listed.token_id))
        for token in (first, second):
            with pytest.raises(UnauthenticatedError, match="revoked"):
                await caller(running, token)
        third = await service.operator_token(description="operator, in HOME")
        assert await caller(running, third) == "admin"

    play(scenario)


def test_service_tokens_are_listed_renewed_and_revoked_and_do_what_their_service_does(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        created = await admin.access.CreateServiceToken(pb2.CreateServiceTokenRequest(service_name="logs"))
        token = created.token
        assert (token.kind, token.service_name, token.user_id) == (token_pb2.TOKEN_KIND_SERVICE, "logs", 0)
        assert token in (await admin.access.ListTokens(pb2.ListTokensRequest())).tokens
        async with calls(running, created.bearer_token) as logs:
            with pytest.raises(
                PermissionDeniedError, match="not among the calls that the logs service makes"
            ):
                await logs.access.CreateToken(pb2.CreateTokenRequest(user_id=1))
        expired = running.signer.service(ServiceAccount("logs"), ttl=-3600, token_id=token.token_id)
        async with calls(running, expired) as logs:
            with pytest.raises(UnauthenticatedError, match="expired"):
                await logs.access.RecordRefusals(pb2.RecordRefusalsRequest())
            renewed = await logs.access.RenewServiceToken(pb2.RenewServiceTokenRequest())
        assert renewed.token.token_id == token.token_id
        async with calls(running, renewed.bearer_token) as logs:
            refusal = pb2.Refusal(
                time=token.create_time, actor="eve", action="permission_denied", resource="call X/Y", count=3
            )
            await logs.access.RecordRefusals(pb2.RecordRefusalsRequest(refusals=[refusal]))
            assert sorted(await audit_rows(running, admin, "permission_denied")) == [
                ("eve", "permission_denied", "call X/Y", 3),
                ("service:logs", "permission_denied", "call AccessService/CreateToken", 1),
            ]
            await admin.access.RevokeToken(pb2.RevokeTokenRequest(token_id=token.token_id))
            with pytest.raises(UnauthenticatedError, match="revoked"):
                await logs.access.RenewServiceToken(pb2.RenewServiceTokenRequest())
        unknown = running.signer.service(ServiceAccount("logs"), ttl=60, token_id=str(uuid.uuid4()))
        async with calls(running, unknown) as logs:
            with pytest.raises(UnauthenticatedError, match="issue_token"):
                await logs.access.RenewServiceToken(pb2.RenewServiceTokenRequest())

    play(scenario)


@pytest.mark.parametrize("way", ["revoked", "deactivated", "expired"])
def test_an_open_stream_ends_with_its_token(play: Play, token_clock: OffsetClock, way: str) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        ada = await admin.user("ada")
        wanted = pb2.CreateTokenRequest(user_id=ada.user_id, ttl=to_duration(600))
        issued = await admin.access.CreateToken(wanted)
        async with running.channel(issued.bearer_token) as channel:
            stub: Any = experiments_service_pb2_grpc.ExperimentsServiceStub(channel)
            watched = experiments_service_pb2.WatchExperimentsRequest(
                queue=experiments_service_pb2.WatchExperimentsRequest.QueueSubscription(key="queue")
            )
            responses = aiter(stub.WatchExperiments(watched))
            await anext(responses)
            if way == "revoked":
                await admin.access.RevokeToken(pb2.RevokeTokenRequest(token_id=issued.token.token_id))
            elif way == "deactivated":
                user = user_pb2.User(user_id=ada.user_id, active=False)
                request = pb2.UpdateUserRequest(user=user)
                request.update_mask.paths.append("active")
                await admin.access.UpdateUser(request)
            else:
                token_clock.jump(601)
            with pytest.raises(UnauthenticatedError, match="expired" if way == "expired" else "revoked"):
                await asyncio.wait_for(to_the_end(responses), 60)

    play(scenario)


def test_refused_calls_are_recorded_by_caller_and_call(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        ada = await admin.user("ada", role=user_pb2.USER_ROLE_VIEWER)
        issued = await admin.access.CreateToken(pb2.CreateTokenRequest(user_id=ada.user_id))
        async with calls(running, issued.bearer_token) as own:
            for name in ("eve", "eva", "evi"):
                with pytest.raises(PermissionDeniedError):
                    await own.access.CreateUser(pb2.CreateUserRequest(name=name))
        async with calls(running, "nonsense") as stranger:
            with pytest.raises(UnauthenticatedError):
                await stranger.access.ListUsers(pb2.ListUsersRequest())
        assert sorted(await audit_rows(running, admin, "permission_denied", "unauthenticated")) == [
            ("ada", "permission_denied", "call AccessService/CreateUser", 3),
            ("anonymous", "unauthenticated", "call AccessService/ListUsers", 1),
        ]

    play(scenario)


def test_a_read_only_token_reads_and_does_nothing_else(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        await admin.workspace("vision")
        request = pb2.CreateTokenRequest(request_id=str(uuid.uuid4()), scope=token_pb2.TOKEN_SCOPE_READ)
        created = await admin.access.CreateToken(request)
        again = await admin.access.CreateToken(request)
        assert (created.token.scope, again.token) == (token_pb2.TOKEN_SCOPE_READ, created.token)
        async with calls(running, again.bearer_token) as reader:
            assert await caller(running, again.bearer_token) == "admin"
            users = (await reader.access.ListUsers(pb2.ListUsersRequest())).users
            assert "admin" in [user.name for user in users]
            for refused in (
                reader.user("eve"),
                reader.workspace("text"),
                reader.access.CreateToken(pb2.CreateTokenRequest()),
                reader.access.CreateSignInCode(pb2.CreateSignInCodeRequest()),
                reader.access.ListAuditRows(pb2.ListAuditRowsRequest()),
            ):
                with pytest.raises(PermissionDeniedError, match="may only read"):
                    await refused
        other = await admin.access.CreateToken(pb2.CreateTokenRequest())
        assert other.token.scope == token_pb2.TOKEN_SCOPE_ALL
        with pytest.raises(InvalidArgumentError, match="scope is 9"):
            await admin.access.CreateToken(pb2.CreateTokenRequest(scope=9))  # type: ignore[arg-type]

    play(scenario)


def test_who_changes_the_own_password_keeps_that_token_and_no_other(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        first, second = await ada_signs_in(admin), await ada_signs_in(admin)
        request = pb2.SetPasswordRequest(user_id=first.token.user_id, password="navy cobol")
        async with calls(running, first.bearer_token) as own:
            made = await own.access.CreateToken(pb2.CreateTokenRequest(user_id=first.token.user_id))
            await own.access.SetPassword(request)
        assert await caller(running, first.bearer_token) == "ada"
        for ended in (second.bearer_token, made.bearer_token):
            with pytest.raises(UnauthenticatedError, match="revoked"):
                await caller(running, ended)
        await admin.access.SetPassword(request)
        with pytest.raises(UnauthenticatedError, match="revoked"):
            await caller(running, first.bearer_token)

    play(scenario)


def test_a_hash_of_an_earlier_version_is_replaced_at_the_next_sign_in(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        ada = await ada_signs_in(admin)
        database = cast("Any", running.services[0])._core.database
        number, salt = ada.token.user_id, b"0123456789abcdef"
        digest = hashlib.scrypt(PASSWORD.encode(), salt=salt, n=2**14, r=8, p=1, dklen=32)
        parts = [base64.b64encode(one).decode() for one in (salt, digest)]
        earlier = "$".join(["scrypt", "16384", "8", "1", *parts])

        async def stored() -> str:
            return str((await database.read(lambda c: users.get(c, number=number))).password)

        await database.write(lambda c: users.set_password(c, number, earlier))
        with pytest.raises(UnauthenticatedError):
            await ada_signs_in(admin, password="another")
        assert await stored() == earlier
        await ada_signs_in(admin)
        anew = await stored()
        assert anew.startswith("scrypt$16$8$1$")
        await ada_signs_in(admin)
        assert await stored() == anew

    play(scenario)
