"""How often a call is repeated that found no service."""

from __future__ import annotations

from support.clocks import ManualClock

from resolute.contracts.calls.retries import ATTEMPTS, Retries


def test_a_call_that_finds_nobody_is_repeated_after_growing_pauses() -> None:
    retries = Retries(None, clock=ManualClock(), jitter=lambda: 0.5)
    pauses = [retries.pause_after("UNAVAILABLE") for _ in range(ATTEMPTS)]
    assert pauses == [0.1, 0.2, 0.4, None]
    assert retries.seconds_left is None


def test_what_the_service_has_answered_is_not_asked_again() -> None:
    for status in ("NOT_FOUND", "DEADLINE_EXCEEDED", "INTERNAL", "CANCELLED"):
        assert Retries(None, clock=ManualClock()).pause_after(status) is None


def test_all_attempts_together_take_no_longer_than_the_call_may() -> None:
    clock = ManualClock()
    retries = Retries(10.0, clock=clock, jitter=lambda: 0.5)
    clock.advance(9.85)
    assert retries.pause_after("UNAVAILABLE") == 0.1
    clock.advance(0.1)
    assert retries.seconds_left is not None
    assert round(retries.seconds_left, 3) == 0.05
    assert retries.pause_after("UNAVAILABLE") is None
    clock.advance(1.0)
    assert retries.seconds_left == 0.0
