"""How often passwords may be tried, also at the same time."""

from __future__ import annotations

import asyncio

import pytest
from support.clocks import ManualClock

from resolute.errors import QuotaError
from resolute_experiments.accounts.attempts import MOST_FOR_A_NAME, MOST_FOR_A_PEER, SignInAttempts


async def attempt(
    attempts: SignInAttempts,
    name: str = "ada",
    *,
    peer: str = "10.0.0.1",
    device: str = "",
    right: bool = False,
) -> bool:
    """Makes an attempt; returns whether it was let through."""
    try:
        async with attempts.attempt(name, peer=peer, device=device) as succeeded:
            await asyncio.sleep(0)
            if right:
                succeeded()
    except QuotaError:
        return False
    return True


def test_of_a_burst_of_attempts_five_are_made() -> None:
    async def scenario() -> None:
        clock = ManualClock()
        attempts = SignInAttempts(clock)
        made = await asyncio.gather(*(attempt(attempts, peer=f"10.0.0.{n}") for n in range(35)))
        assert sum(made) == MOST_FOR_A_NAME
        assert await attempt(attempts, "grace")
        clock.advance(59)
        assert not await attempt(attempts)
        clock.advance(2)
        assert await attempt(attempts)

    asyncio.run(scenario())


def test_one_address_tries_few_names() -> None:
    async def scenario() -> None:
        attempts = SignInAttempts(ManualClock())
        made = [await attempt(attempts, f"user{n}") for n in range(MOST_FOR_A_PEER + 5)]
        assert sum(made) == MOST_FOR_A_PEER
        assert await attempt(attempts, "user1", peer="10.0.0.2")

    asyncio.run(scenario())


def test_a_known_device_is_not_locked_out_by_others_and_has_a_limit_of_its_own() -> None:
    async def scenario() -> None:
        attempts = SignInAttempts(ManualClock())
        while await attempt(attempts):
            pass
        made = [await attempt(attempts, device="laptop") for _ in range(10)]
        assert sum(made) == MOST_FOR_A_NAME
        assert not await attempt(attempts, device="laptop")
        assert await attempt(attempts, device="desktop")

    asyncio.run(scenario())


def test_right_passwords_count_for_nothing_and_forgive_no_wrong_ones() -> None:
    async def scenario() -> None:
        attempts = SignInAttempts(ManualClock())
        for _ in range(MOST_FOR_A_PEER + 1):
            assert await attempt(attempts, right=True)
        for _ in range(MOST_FOR_A_NAME - 1):
            assert await attempt(attempts)
        assert await attempt(attempts, right=True)
        assert await attempt(attempts)
        with pytest.raises(QuotaError, match="try again in a minute"):
            async with attempts.attempt("ada", peer="10.0.0.1"):
                pass

    asyncio.run(scenario())


def test_only_so_many_attempts_wait_at_the_same_time() -> None:
    async def scenario() -> None:
        attempts = SignInAttempts(ManualClock())
        made = await asyncio.gather(*(attempt(attempts, f"user{n}", peer=f"10.0.{n}.1") for n in range(200)))
        assert 50 <= sum(made) < 60

    asyncio.run(scenario())
