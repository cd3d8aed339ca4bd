"""Services that run apart from experiments refuse tokens that were ended early, and bear its absence."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clocks import ManualClock
from support.services.in_process import Running, serving

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1.access_service_pb2_grpc import AccessServiceStub
from resolute.api.experiments.v1.user_pb2 import USER_ROLE_EDITOR
from resolute.errors import UnauthenticatedError
from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.auth.keys import FetchedKeys
from resolute_serving.auth.tokens import TokenVerifier, load_or_create_key
from resolute_serving.context import Role, User

HALF_A_MINUTE = 31.0


async def token_of_ada(running: Running) -> tuple[str, str]:
    """Lets an admin create a user with a token; returns the token and its identifier."""
    async with running.channel(running.user_token()) as channel:
        access: Any = AccessServiceStub(channel)
        ada = (await access.CreateUser(pb2.CreateUserRequest(name="ada", role=USER_ROLE_EDITOR))).user
        issued = await access.CreateToken(pb2.CreateTokenRequest(user_id=ada.user_id))
    return issued.bearer_token, issued.token.token_id


def test_a_revoked_token_is_refused_within_half_a_minute_even_if_experiments_is_gone_then(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    key = load_or_create_key(tmp_path / "data/experiments/signing-key.pem")

    async def scenario() -> None:
        async with serving([BLUEPRINT], tmp_path, key=key) as running:
            cluster_id = running.signer._cluster_id
            verifier = TokenVerifier(
                FetchedKeys(running.address, clock=clock), cluster_id=cluster_id, clock=ManualClock()
            )
            token, token_id = await token_of_ada(running)
            assert (await verifier.verify(token)).principal == User("ada", Role.EDITOR, user_id=3)
            async with running.channel(running.user_token()) as channel:
                access: Any = AccessServiceStub(channel)
                await access.RevokeToken(pb2.RevokeTokenRequest(token_id=token_id))
            clock.advance(HALF_A_MINUTE)
            with pytest.raises(UnauthenticatedError, match="revoked"):
                await verifier.verify(token)
        clock.advance(HALF_A_MINUTE)
        with pytest.raises(UnauthenticatedError, match="revoked"):
            await verifier.verify(token)

    asyncio.run(scenario())
