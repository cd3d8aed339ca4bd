"""Codes that sign a browser in once, on both databases."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from contract.experiments.accounts.sign_in.test_sign_in import ada_signs_in, audit_rows, caller
from sqlalchemy.engine import Connection
from support.services.access import Calls, Scenario, calls
from support.services.in_process import Running

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1 import token_pb2, user_pb2
from resolute.errors import UnauthenticatedError
from resolute_experiments.service import ExperimentsService

Play = Callable[[Scenario], None]


async def new_code(of: Calls) -> str:
    return str((await of.access.CreateSignInCode(pb2.CreateSignInCodeRequest())).code)


async def redeem(admin: Calls, code: str) -> pb2.RedeemSignInCodeResponse:
    response: pb2.RedeemSignInCodeResponse = await admin.access.RedeemSignInCode(
        pb2.RedeemSignInCodeRequest(code=code)
    )
    return response


def test_of_many_who_have_a_code_one_gets_a_session(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        signed_in = await ada_signs_in(admin)
        async with calls(running, signed_in.bearer_token) as ada:
            code = await new_code(ada)
            shown = (await ada.access.ListTokens(pb2.ListTokensRequest())).tokens
            assert {token.kind for token in shown} == {token_pb2.TOKEN_KIND_SIGN_IN}
        outcomes = await asyncio.gather(*(redeem(admin, code) for _ in range(5)), return_exceptions=True)
        sessions = [one for one in outcomes if isinstance(one, pb2.RedeemSignInCodeResponse)]
        assert len(sessions) == 1
        assert [type(one) for one in outcomes].count(UnauthenticatedError) == 4
        assert sessions[0].token.kind == token_pb2.TOKEN_KIND_BROWSER
        assert await caller(running, sessions[0].bearer_token) == "ada"
        assert await audit_rows(running, admin, "login_failed") == [
            ("admin", "login_failed", "sign-in code", 4)
        ]

    play(scenario)


def test_a_code_and_its_session_end_with_the_token_that_asked_for_it(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        ada = await admin.user("ada")
        issued = await admin.access.CreateToken(pb2.CreateTokenRequest(user_id=ada.user_id))
        async with calls(running, issued.bearer_token) as own:
            session, unused = await redeem(admin, await new_code(own)), await new_code(own)
        assert session.token.parent_token_id == issued.token.token_id
        assert session.token.expire_time.seconds <= issued.token.expire_time.seconds
        await admin.access.RevokeToken(pb2.RevokeTokenRequest(token_id=issued.token.token_id))
        with pytest.raises(UnauthenticatedError):
            await caller(running, session.bearer_token)
        with pytest.raises(UnauthenticatedError, match="used before"):
            await redeem(admin, unused)
        with pytest.raises(UnauthenticatedError, match="sign-in-link"):
            await redeem(admin, "a guess")

    play(scenario)


def test_nobody_signs_in_as_a_user_who_is_deactivated(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        signed_in = await ada_signs_in(admin)
        async with calls(running, signed_in.bearer_token) as ada:
            code = await new_code(ada)
        changed = user_pb2.User(user_id=signed_in.token.user_id, active=False)
        request = pb2.UpdateUserRequest(user=changed)
        request.update_mask.paths.append("active")
        await admin.access.UpdateUser(request)
        with pytest.raises(UnauthenticatedError):
            await redeem(admin, code)

    play(scenario)


def test_a_wrong_code_does_not_wait_for_those_who_write(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        (service,) = (one for one in running.services if isinstance(one, ExperimentsService))
        entered, release = threading.Event(), threading.Event()

        def hold(_: Connection) -> None:
            entered.set()
            assert release.wait(60)

        holding = asyncio.ensure_future(service._core.database.write(hold))
        try:
            assert await asyncio.to_thread(entered.wait, 60)
            with pytest.raises(UnauthenticatedError, match="sign-in-link"):
                await redeem(admin, "a guess")
        finally:
            release.set()
        await holding

    play(scenario)
