"""Who was not heard of for three heartbeats is noticed at that very moment."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import pytest
from support.clocks import ManualClock

from resolute_experiments.allocations.leases import Leases

TTL = 30.0
HEARTBEAT = TTL / 3
LOOK = 5.0
"""How often the service looks while it runs."""


def run_for(leases: Leases, clock: ManualClock, seconds: float, *, live: Sequence[str] = ("a",)) -> list[str]:
    """Lets time pass while the service runs, and returns whose lease has expired at its end."""
    while seconds > 0:
        clock.advance(min(seconds, LOOK))
        late = leases.expired(live)
        seconds -= LOOK
    return late


def test_a_silent_run_is_noticed_after_three_heartbeats_and_not_before() -> None:
    clock = ManualClock()
    leases = Leases(clock, ttl=TTL)
    leases.renew("a")
    assert run_for(leases, clock, 2.9 * HEARTBEAT) == []
    assert round(leases.seconds_until_next(), 6) == 1.0
    clock.advance(leases.seconds_until_next())
    assert leases.expired(["a"]) == ["a"]
    assert leases.seconds_until_next() == inf


def test_a_renewal_begins_the_time_anew() -> None:
    clock = ManualClock()
    leases = Leases(clock, ttl=TTL)
    leases.renew("a")
    run_for(leases, clock, 2.0 * HEARTBEAT)
    leases.renew("a")
    assert run_for(leases, clock, 2.0 * HEARTBEAT) == []


def test_time_before_this_life_of_the_service_does_not_count() -> None:
    clock = ManualClock()
    clock.advance(1000.0)
    leases = Leases(clock, ttl=TTL)
    assert leases.expired(["adopted"]) == []
    assert run_for(leases, clock, TTL, live=["adopted"]) == ["adopted"]


@pytest.mark.parametrize("seconds", [3 * 3600.0, 86_400.0])
def test_time_during_which_the_service_was_paused_does_not_count(seconds: float) -> None:
    clock = ManualClock()
    leases = Leases(clock, ttl=TTL)
    leases.renew("a")
    run_for(leases, clock, HEARTBEAT)
    clock.advance(seconds)
    assert leases.expired(["a"]) == [], "it could not be heard"
    assert run_for(leases, clock, HEARTBEAT) == ["a"]


def test_a_run_that_ended_has_no_lease_to_lose() -> None:
    clock = ManualClock()
    leases = Leases(clock, ttl=TTL)
    leases.renew("a")
    leases.forget("a")
    assert leases.seconds_until_next() == inf


def test_each_container_is_silent_since_it_was_heard_until_its_run_is_settled() -> None:
    clock = ManualClock()
    leases = Leases(clock, ttl=TTL)
    leases.renew("a", rank=0)
    leases.renew("a", rank=1)
    run_for(leases, clock, 2 * LOOK)
    leases.renew("a", rank=1)
    # A container that ended ends the lease, and says nothing of the others.
    leases.forget("a")
    run_for(leases, clock, 2 * LOOK)
    assert [leases.silence("a", rank) for rank in (0, 1, 2)] == [4 * LOOK, 2 * LOOK, 0.0]
    run_for(leases, clock, LOOK)
    assert leases.silence("a", 2) == LOOK
    leases.settled("a")
    assert leases.silence("a", 0) == 0.0
