"""Services go on calling each other when a machine was suspended, or its clock was set."""

from __future__ import annotations

import asyncio

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.clocks import JumpingClock
from support.static_keys import StaticKeys

from resolute_serving.auth.service_tokens import ServiceTokens
from resolute_serving.auth.tokens import TokenSigner, TokenVerifier
from resolute_serving.context import ServiceAccount

DAY = 86_400.0


@pytest.mark.parametrize("seconds", [3 * 3600.0, DAY, -3 * 3600.0, -DAY])
def test_the_token_of_services_is_valid_after_a_suspend_and_when_the_clock_was_set(seconds: float) -> None:
    async def body() -> None:
        clock = JumpingClock()
        signer = TokenSigner(Ed25519PrivateKey.generate(), cluster_id="c", clock=clock)
        verifier = TokenVerifier(StaticKeys({signer.key_id: signer.public_key}), cluster_id="c", clock=clock)
        tokens = ServiceTokens(signer, ServiceAccount("embedded"), clock=clock)
        first = tokens()
        assert tokens() == first
        # There and back, as when somebody corrects a clock that was set wrong.
        for jump in (seconds, -seconds):
            clock.jump(jump)
            assert (await verifier.verify(tokens())).principal == ServiceAccount("embedded")
        clock.jump_uptime(abs(seconds))
        assert (await verifier.verify(tokens())).principal == ServiceAccount("embedded")
        clock.advance(DAY / 2)
        assert tokens() != first

    asyncio.run(body())
