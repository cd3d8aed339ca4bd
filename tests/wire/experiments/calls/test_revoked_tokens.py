"""Services that run apart from experiments refuse tokens that were ended early, and bear its absence."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.clocks import ManualClock
from support.services.in_process import Running, serving

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1.access_service_pb2_grpc import AccessServiceStub
from resolute.api.experiments.v1.user_pb2 import USER_ROLE_EDITOR
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.errors import UnauthenticatedError
from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.auth.keys import FetchedKeys
from resolute_serving.auth.signing_keys import KeyFile, drop_old, load_or_create_key, rotate
from resolute_serving.auth.tokens import TokenSigner, TokenVerifier
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


def test_services_apart_follow_a_rotation_at_once_and_the_end_of_the_old_key_within_half_a_minute(
    tmp_path: Path,
) -> None:
    clock, path = ManualClock(), tmp_path / "data/experiments/signing-key.pem"
    key = load_or_create_key(path)
    ada = User("ada", Role.EDITOR, user_id=3)

    async def scenario() -> None:
        async with serving([BLUEPRINT], tmp_path, key=key) as running:
            cluster_id = running.signer._cluster_id
            signs = ManualClock()
            signer = TokenSigner(KeyFile(path, clock=signs), cluster_id=cluster_id, clock=SYSTEM_CLOCK)
            verifier = TokenVerifier(
                FetchedKeys(running.address, clock=SYSTEM_CLOCK), cluster_id=cluster_id, clock=clock
            )
            old = signer.user(ada, ttl=3600)
            assert (await verifier.verify(old)).principal == ada
            rotate(path)
            # Many at once ask for the new key once; those of strangers among them are refused by the answer.
            forged = TokenSigner(Ed25519PrivateKey.generate(), cluster_id=cluster_id, clock=SYSTEM_CLOCK)
            signs.advance(1)
            new = signer.user(ada, ttl=3600)
            answers = await asyncio.gather(
                *(verifier.verify(token) for token in (new, new, forged.user(ada, ttl=3600), old)),
                return_exceptions=True,
            )
            assert [isinstance(one, UnauthenticatedError) for one in answers] == [False, False, True, False]
            assert drop_old(path, now=None) == 1
            apart = FetchedKeys(running.address, clock=clock)
            later = TokenVerifier(apart, cluster_id=cluster_id, clock=clock)
            assert (await later.verify(new)).principal == ada
            with pytest.raises(UnauthenticatedError):
                await TokenVerifier(
                    FetchedKeys(running.address, clock=clock), cluster_id=cluster_id, clock=clock
                ).verify(old)

    asyncio.run(scenario())
