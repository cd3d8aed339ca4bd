from __future__ import annotations

import math

from support.clocks import ManualClock

from resolute_launch.processes.shutdown_sequence import ShutdownSequence, ShutdownStep


def test_nothing_is_due_without_a_demand() -> None:
    shutdown_sequence = ShutdownSequence(ManualClock(), grace=15)
    assert shutdown_sequence.due() is ShutdownStep.NONE
    assert shutdown_sequence.seconds_until_due() == math.inf


def test_sigterm_comes_at_the_deadline_and_sigkill_after_the_grace_each_once() -> None:
    clock = ManualClock()
    shutdown_sequence = ShutdownSequence(clock, grace=15)
    shutdown_sequence.terminate_in(100)
    assert shutdown_sequence.seconds_until_due() == 100
    clock.advance(99)
    assert shutdown_sequence.due() is ShutdownStep.NONE
    clock.advance(1)
    assert [shutdown_sequence.due(), shutdown_sequence.due()] == [ShutdownStep.TERMINATE, ShutdownStep.NONE]
    assert shutdown_sequence.seconds_until_due() == 15
    clock.advance(15)
    assert [shutdown_sequence.due(), shutdown_sequence.due()] == [ShutdownStep.KILL, ShutdownStep.NONE]
    assert shutdown_sequence.seconds_until_due() == math.inf


def test_the_earliest_demand_counts() -> None:
    clock = ManualClock()
    shutdown_sequence = ShutdownSequence(clock, grace=15)
    shutdown_sequence.terminate_in(100)
    shutdown_sequence.terminate_in(10)
    shutdown_sequence.terminate_in(50)
    assert shutdown_sequence.seconds_until_due() == 10
    shutdown_sequence.kill_in(5)
    assert shutdown_sequence.seconds_until_due() == 5
    clock.advance(5)
    assert [shutdown_sequence.due(), shutdown_sequence.due()] == [ShutdownStep.KILL, ShutdownStep.NONE]


def test_a_demand_that_is_repeated_does_not_begin_again() -> None:
    clock = ManualClock()
    shutdown_sequence = ShutdownSequence(clock, grace=2)
    shutdown_sequence.terminate_in(0)
    assert shutdown_sequence.due() is ShutdownStep.TERMINATE
    clock.advance(1)
    shutdown_sequence.terminate_in(0)
    assert shutdown_sequence.due() is ShutdownStep.NONE
    clock.advance(1)
    assert shutdown_sequence.due() is ShutdownStep.KILL
    shutdown_sequence.terminate_in(0)
    assert shutdown_sequence.due() is ShutdownStep.NONE
    clock.advance(100)
    assert shutdown_sequence.due() is ShutdownStep.NONE
