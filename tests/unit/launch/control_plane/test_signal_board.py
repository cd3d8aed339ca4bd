from __future__ import annotations

from pathlib import Path

import pytest
from support.clocks import ManualClock

from resolute.api.preemption.v1.signal_pb2 import (
    SIGNAL_REASON_MACHINE,
    SIGNAL_REASON_SEARCH,
    SIGNAL_REASON_USER,
    Signal,
)
from resolute.contracts.run.shared_memory.flags import Flags
from resolute_launch.control_plane.signal_state import Directive, SignalState


@pytest.fixture
def flags(tmp_path: Path) -> Flags:
    return Flags.create(tmp_path / "flags")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


@pytest.fixture
def signal_state(flags: Flags, clock: ManualClock) -> SignalState:
    return SignalState(flags, clock=clock, preemption_timeout=60)


def test_a_signal_reaches_the_trial_with_its_reason_and_deadline(
    signal_state: SignalState, flags: Flags
) -> None:
    assert signal_state.update(Signal(revision=2, preempt=True, reason=SIGNAL_REASON_USER))
    assert (flags.revision, flags.preempt, flags.kill, flags.reason) == (2, True, False, SIGNAL_REASON_USER)
    assert flags.deadline == 1060.0
    assert signal_state.directive == Directive(preempt=True, reason=SIGNAL_REASON_USER)
    assert signal_state.directive.reason_name == "user"


def test_an_older_or_the_same_signal_changes_nothing(signal_state: SignalState, flags: Flags) -> None:
    signal_state.update(Signal(revision=3, preempt=True))
    assert not signal_state.update(Signal(revision=2, preempt=False))
    assert not signal_state.update(Signal(revision=3, preempt=False))
    assert flags.preempt


def test_an_empty_signal_is_no_change(signal_state: SignalState) -> None:
    assert not signal_state.update(Signal())
    assert signal_state.directive == Directive()


def test_the_deadline_is_counted_from_when_the_signal_was_first_seen(
    signal_state: SignalState, flags: Flags, clock: ManualClock
) -> None:
    signal_state.update(Signal(revision=1, preempt=True))
    clock.advance(30)
    assert signal_state.update(Signal(revision=2, preempt=True, reason=SIGNAL_REASON_SEARCH))
    assert flags.deadline == 1060.0


def test_what_the_machine_decided_outlasts_what_the_server_does_not_know(
    signal_state: SignalState, flags: Flags
) -> None:
    assert signal_state.preempt_locally(SIGNAL_REASON_MACHINE)
    assert not signal_state.preempt_locally(SIGNAL_REASON_MACHINE)
    assert flags.preempt
    assert flags.reason == SIGNAL_REASON_MACHINE
    assert not signal_state.update(Signal(revision=1, preempt=False))
    assert flags.preempt
    assert signal_state.update(Signal(revision=2, preempt=True, reason=SIGNAL_REASON_USER))
    assert flags.reason == SIGNAL_REASON_USER


def test_a_kill_is_shown_as_one(signal_state: SignalState, flags: Flags) -> None:
    assert signal_state.update(Signal(revision=1, kill=True, reason=SIGNAL_REASON_USER))
    assert (flags.preempt, flags.kill) == (False, True)
    assert flags.deadline == 0.0


def test_an_acknowledgement_names_the_revision_that_was_seen(signal_state: SignalState, flags: Flags) -> None:
    assert signal_state.acknowledged_revision is None
    signal_state.update(Signal(revision=4, preempt=True))
    flags.acknowledge()
    assert signal_state.acknowledged_revision == 4
