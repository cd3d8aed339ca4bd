from __future__ import annotations

import math

from support.clocks import ManualClock

from resolute_launch.escalation import Escalation, Step


def test_nothing_is_due_without_a_demand() -> None:
    escalation = Escalation(ManualClock(), grace=15)
    assert escalation.due() is Step.NONE
    assert escalation.seconds_until_due() == math.inf


def test_sigterm_comes_at_the_deadline_and_sigkill_after_the_grace_each_once() -> None:
    clock = ManualClock()
    escalation = Escalation(clock, grace=15)
    escalation.terminate_in(100)
    assert escalation.seconds_until_due() == 100
    clock.advance(99)
    assert escalation.due() is Step.NONE
    clock.advance(1)
    assert [escalation.due(), escalation.due()] == [Step.TERMINATE, Step.NONE]
    assert escalation.seconds_until_due() == 15
    clock.advance(15)
    assert [escalation.due(), escalation.due()] == [Step.KILL, Step.NONE]
    assert escalation.seconds_until_due() == math.inf


def test_the_earliest_demand_counts() -> None:
    clock = ManualClock()
    escalation = Escalation(clock, grace=15)
    escalation.terminate_in(100)
    escalation.terminate_in(10)
    escalation.terminate_in(50)
    assert escalation.seconds_until_due() == 10
    escalation.kill_in(5)
    assert escalation.seconds_until_due() == 5
    clock.advance(5)
    assert [escalation.due(), escalation.due()] == [Step.KILL, Step.NONE]


def test_a_demand_that_is_repeated_does_not_begin_again() -> None:
    clock = ManualClock()
    escalation = Escalation(clock, grace=2)
    escalation.terminate_in(0)
    assert escalation.due() is Step.TERMINATE
    clock.advance(1)
    escalation.terminate_in(0)
    assert escalation.due() is Step.NONE
    clock.advance(1)
    assert escalation.due() is Step.KILL
    escalation.terminate_in(0)
    assert escalation.due() is Step.NONE
    clock.advance(100)
    assert escalation.due() is Step.NONE
