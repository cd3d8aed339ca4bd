"""Streams end with the tokens that opened them; renewing calls take tokens that have expired."""

from __future__ import annotations

import asyncio

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.clocks import ManualClock
from support.static_keys import StaticKeys

from resolute.errors import UnauthenticatedError
from resolute_serving.auth.open_streams import OpenStreams
from resolute_serving.auth.policy.permissions import PERMISSIONS
from resolute_serving.auth.refusals import MOST_KINDS, Refusals, client_address
from resolute_serving.auth.tokens import TokenSigner, TokenVerifier, VerifiedToken
from resolute_serving.bounds.streams import StreamLimits
from resolute_serving.context import Role, ServiceAccount, TrialRun, User

HERE = "10.0.0.1"
RUN = TrialRun(trial_id="t", run=1, experiment_id="e", allocation_id="t.1", workspace="w")


def test_a_stream_ends_when_its_token_expires_and_others_go_on() -> None:
    async def scenario() -> None:
        clock = ManualClock()
        signer = TokenSigner(Ed25519PrivateKey.generate(), cluster_id="c", clock=clock)
        verifier = TokenVerifier(StaticKeys({signer.key_id: signer.public_key}), cluster_id="c", clock=clock)
        streams = OpenStreams(verifier, limits=StreamLimits())

        async def stream(ttl: float) -> None:
            with streams.registered(await verifier.verify(signer.trial(RUN, ttl=ttl)), address=HERE):
                await asyncio.Event().wait()

        short, long = asyncio.create_task(stream(60)), asyncio.create_task(stream(600))
        await asyncio.sleep(0)
        await streams.check()
        assert not short.done()
        clock.advance(61)
        await streams.check()
        with pytest.raises(UnauthenticatedError, match="expired"):
            await short
        assert not long.done()
        long.cancel()
        with pytest.raises(asyncio.CancelledError):
            await long

    asyncio.run(scenario())


def test_streams_are_checked_again_after_a_check_that_failed_by_a_defect() -> None:
    defects = [RuntimeError("a defect")]

    class FailingOnce(StaticKeys):
        async def revoked(self) -> frozenset[str]:
            if defects:
                raise defects.pop()
            return frozenset({"its id"})

    async def scenario() -> None:
        clock = ManualClock()
        signer = TokenSigner(Ed25519PrivateKey.generate(), cluster_id="c", clock=clock)
        keys = FailingOnce({signer.key_id: signer.public_key})
        streams = OpenStreams(
            TokenVerifier(keys, cluster_id="c", clock=clock),
            limits=StreamLimits(),
            sleep=lambda _: asyncio.sleep(0),
        )
        token = VerifiedToken(
            User("ada", Role.EDITOR), expires=clock.time() + 600, token_id="its id", key_id=signer.key_id
        )

        async def stream() -> None:
            with streams.registered(token, address=HERE):
                await asyncio.Event().wait()

        revoked = asyncio.create_task(stream())
        streams.start()
        with pytest.raises(UnauthenticatedError, match="revoked"):
            await asyncio.wait_for(revoked, 60)
        await streams.stop()
        assert not defects

    asyncio.run(scenario())


def test_nothing_is_checked_while_no_stream_of_a_person_or_a_run_is_open() -> None:
    async def scenario() -> None:
        clock, pauses = ManualClock(), 0
        signer = TokenSigner(Ed25519PrivateKey.generate(), cluster_id="c", clock=clock)
        verifier = TokenVerifier(StaticKeys({signer.key_id: signer.public_key}), cluster_id="c", clock=clock)

        async def pause(_: float) -> None:
            nonlocal pauses
            pauses += 1
            await asyncio.sleep(0)

        async def stream(token: str) -> None:
            with streams.registered(await verifier.verify(token), address=HERE):
                await asyncio.Event().wait()

        streams = OpenStreams(verifier, limits=StreamLimits(), sleep=pause)
        streams.start()
        of_service = asyncio.create_task(stream(signer.service(ServiceAccount(name="metrics"), ttl=60)))
        for _ in range(50):
            await asyncio.sleep(0)
        assert pauses == 0
        of_run = asyncio.create_task(stream(signer.trial(RUN, ttl=60)))
        for _ in range(50):
            await asyncio.sleep(0)
        assert pauses > 0
        assert not of_run.done()
        clock.advance(61)
        for each in (of_run, of_service):
            with pytest.raises(UnauthenticatedError, match="expired"):
                await asyncio.wait_for(each, 60)
        await streams.stop()

    asyncio.run(scenario())


def test_what_is_open_when_the_server_stops_ends_with_a_sentence() -> None:
    async def scenario() -> None:
        clock = ManualClock()
        verifier = TokenVerifier(StaticKeys({}), cluster_id="c", clock=clock)
        streams = OpenStreams(verifier, limits=StreamLimits())
        token = VerifiedToken(
            User("ada", Role.EDITOR), expires=clock.time() + 600, token_id="its id", key_id="k"
        )

        async def unread() -> None:
            with streams.registered(token, address=HERE):
                await asyncio.Event().wait()

        open_ones = [asyncio.create_task(unread()) for _ in range(3)]
        await asyncio.sleep(0)
        streams.end()
        ended = await asyncio.wait_for(asyncio.gather(*open_ones, return_exceptions=True), 60)
        assert {str(error) for error in ended} == {"the service stops; call again, from what came last"}

    asyncio.run(scenario())


def test_calls_that_renew_a_token_take_one_that_has_expired_and_no_others_do() -> None:
    renewing = {method.rsplit("/", 1)[1] for method, rule in PERMISSIONS.items() if rule.expired}
    assert renewing == {"RenewLease", "RenewRun", "RenewServiceToken"}

    async def scenario() -> None:
        clock = ManualClock()
        signer = TokenSigner(Ed25519PrivateKey.generate(), cluster_id="c", clock=clock)
        verifier = TokenVerifier(StaticKeys({signer.key_id: signer.public_key}), cluster_id="c", clock=clock)
        token = signer.trial(RUN, ttl=60)
        clock.advance(86_400)
        assert (await verifier.verify(token, expired=True)).principal == RUN
        with pytest.raises(UnauthenticatedError, match="expired"):
            await verifier.verify(token)

    asyncio.run(scenario())


def test_refusals_are_added_up_and_bounded() -> None:
    refusals = Refusals(ManualClock())
    for number in range(10 * MOST_KINDS):
        refusals.note("unauthenticated", f"call X/{number % (2 * MOST_KINDS)}", peer="10.0.0.1")
    taken = refusals.take()
    assert len(taken) == MOST_KINDS + 1
    assert sum(counted.count for counted in taken) == 10 * MOST_KINDS
    assert refusals.take() == []


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:10.0.0.7:5123", "10.0.0.7"),
        ("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:5123", "2001:db8:1:2::/64"),
        ("ipv6:[::ffff:10.0.0.7]:5123", "10.0.0.7"),
        ("unix:/run/x", "unix"),
    ],
)
def test_clients_are_told_apart_by_address(peer: str, address: str) -> None:
    assert client_address(peer) == address
