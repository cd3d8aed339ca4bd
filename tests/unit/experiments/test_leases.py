"""Who was not heard of for three heartbeats is noticed at that very moment."""

from __future__ import annotations

from math import inf

from support.clocks import ManualClock

from resolute_experiments.resources.leases import Leases

TTL = 30.0
HEARTBEAT = TTL / 3


def test_a_silent_run_is_noticed_after_three_heartbeats_and_not_before() -> None:
    clock = ManualClock()
    leases = Leases(clock, ttl=TTL)
    leases.renew("a")
    clock.advance(2.9 * HEARTBEAT)
    assert leases.expired(["a"]) == []
    assert round(leases.seconds_until_next(), 6) == 1.0
    clock.advance(leases.seconds_until_next())
    assert leases.expired(["a"]) == ["a"]
    assert leases.seconds_until_next() == inf


def test_a_renewal_begins_the_time_anew() -> None:
    clock = ManualClock()
    leases = Leases(clock, ttl=TTL)
    leases.renew("a")
    clock.advance(2.0 * HEARTBEAT)
    leases.renew("a")
    clock.advance(2.0 * HEARTBEAT)
    assert leases.expired(["a"]) == []


def test_time_before_this_life_of_the_service_does_not_count() -> None:
    clock = ManualClock()
    clock.advance(1000.0)
    leases = Leases(clock, ttl=TTL)
    assert leases.expired(["adopted"]) == []
    clock.advance(TTL)
    assert leases.expired(["adopted"]) == ["adopted"]


def test_a_run_that_ended_has_no_lease_to_lose() -> None:
    clock = ManualClock()
    leases = Leases(clock, ttl=TTL)
    leases.renew("a")
    leases.forget("a")
    assert leases.seconds_until_next() == inf
