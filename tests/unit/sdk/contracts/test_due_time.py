"""What is due by either clock is due: a machine may sleep, and its clock may be set."""

from __future__ import annotations

import pytest
from support.clocks import JumpingClock

from resolute.contracts.clock import DueTime

DAY = 86_400.0


def test_what_is_due_after_some_time_is_due_then_and_not_before() -> None:
    clock = JumpingClock()
    due = DueTime(clock)
    assert due.seconds_left == 0.0
    due.set(10.0)
    clock.advance(9.9)
    assert due.seconds_left == pytest.approx(0.1)
    clock.advance(0.1)
    assert due.seconds_left == 0.0


@pytest.mark.parametrize("seconds", [3 * 3600.0, DAY, -3 * 3600.0, -DAY])
def test_a_suspend_or_a_clock_that_is_set_makes_it_due(seconds: float) -> None:
    clock = JumpingClock()
    due = DueTime(clock)
    due.set(10.0)
    clock.jump(seconds)
    assert due.seconds_left == 0.0
    due.set(10.0)
    assert due.seconds_left == 10.0


@pytest.mark.parametrize("seconds", [3 * 3600.0, DAY])
def test_uptime_that_passes_alone_makes_it_due(seconds: float) -> None:
    clock = JumpingClock()
    due = DueTime(clock)
    due.set(10.0)
    began = clock.time()
    clock.jump_uptime(seconds)
    assert clock.time() == began
    assert due.seconds_left == 0.0
    due.set(10.0)
    assert due.seconds_left == 10.0


def test_a_small_correction_of_the_clock_does_not() -> None:
    clock = JumpingClock()
    due = DueTime(clock)
    due.set(100.0)
    clock.jump(-1.0)
    assert not due.reached
