"""What counts when several containers of a run ended, each in its own way and at its own time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from resolute_experiments.exits.policy import EarlyExit, Exit
from resolute_experiments.exits.summary import summarize_exit
from resolute_experiments.states import RunOutcome
from resolute_experiments.store.runs import Container, Run

NOW = 1000.0
NOTICE = 30.0
RUN = Run(
    trial_id="t",
    run=1,
    allocation_id="t.1",
    experiment_id="e",
    outcome=RunOutcome.UNSPECIFIED,
    exit_code=None,
    failure="",
    slot_ids=(0, 1),
    started_at=1.0,
    ended_at=None,
    trace_id="",
    signal_revision=0,
    preempt=False,
    kill=False,
    signal_reason="",
    signal_deadline=None,
    acknowledged=False,
    log_policies=(),
    preemption_timeout=None,
    request_id=None,
)
LIVING = Container(
    allocation_id="t.1",
    container_rank=0,
    slot_ids=(0,),
    node=0,
    address="",
    ports=(),
    pid=0,
    exited=False,
    lost=False,
    exit_code=None,
    acknowledged=False,
    early_exit_reason="",
    failure="",
    ended_at=None,
    straggler=False,
)


def exited(at: float | None, *, code: int = 0, failure: str = "", early: str = "") -> Container:
    return replace(LIVING, exited=True, exit_code=code, failure=failure, early_exit_reason=early, ended_at=at)


def lost(at: float | None, *, straggler: bool = False) -> Container:
    return replace(LIVING, lost=True, ended_at=at, straggler=straggler)


@dataclass(frozen=True)
class Case:
    """Containers by rank, and what their run's end is."""

    name: str
    containers: tuple[Container, ...]
    exit: Exit
    failure: str = ""


PEER = exited(503.0, code=1, failure="connection closed by peer")
CULPRIT = exited(500.0, code=3, failure="ValueError: bad batch")

CASES = (
    Case("all ended well", (exited(500.0), exited(510.0)), Exit()),
    Case("one alone failed", (exited(500.0), PEER), Exit(exit_code=1), "connection closed by peer"),
    Case(
        "the first that failed decides, whatever its rank",
        (PEER, CULPRIT),
        Exit(exit_code=3),
        "ValueError: bad batch",
    ),
    Case("of rank 0 too", (CULPRIT, PEER), Exit(exit_code=3), "ValueError: bad batch"),
    Case(
        "at one instant the lower rank decides",
        (replace(PEER, ended_at=500.0), CULPRIT),
        Exit(exit_code=1),
        "connection closed by peer",
    ),
    Case(
        "one that ended before ends were dated was before the others",
        (PEER, replace(CULPRIT, ended_at=None)),
        Exit(exit_code=3),
        "ValueError: bad batch",
    ),
    Case(
        "a first failure without words is told by the next one's",
        (PEER, exited(500.0, code=137)),
        Exit(exit_code=137),
        "connection closed by peer",
    ),
    Case("one was lost and none failed", (exited(500.0), lost(900.0)), Exit(lost=True)),
    Case("all were lost", (lost(500.0), lost(None)), Exit(lost=True)),
    Case("a loss made the other fail", (PEER, lost(500.0)), Exit(lost=True, exit_code=1)),
    Case(
        "a loss before it that is noticed after it",
        (PEER, lost(503.0 + NOTICE)),
        Exit(lost=True, exit_code=1),
    ),
    Case(
        "a loss too late to be the cause",
        (CULPRIT, lost(500.1 + NOTICE)),
        Exit(exit_code=3),
        "ValueError: bad batch",
    ),
    Case(
        "a straggler that was ended here is no loss, however soon",
        (CULPRIT, lost(501.0, straggler=True)),
        Exit(exit_code=3),
        "ValueError: bad batch",
    ),
    Case(
        "the stragglers of a loss are no failure",
        (lost(500.0), lost(560.0, straggler=True)),
        Exit(lost=True),
    ),
    Case(
        "what its code said stands beside a loss",
        (exited(500.0, code=1, failure="no such layer", early="INVALID_HP"), lost(501.0)),
        Exit(exit_code=1, early_exit=EarlyExit.INVALID_HP),
        "no such layer",
    ),
    Case(
        "its code is believed what it said first",
        (exited(510.0, early="USER_REQUESTED_STOP"), exited(500.0, early="INVALID_HP")),
        Exit(early_exit=EarlyExit.INVALID_HP),
    ),
    Case(
        "the words of the code that left early come before those of who missed it",
        (PEER, exited(510.0, failure="too deep", early="INVALID_HP")),
        Exit(exit_code=1, early_exit=EarlyExit.INVALID_HP),
        "too deep",
    ),
    Case(
        "one that acknowledged did so for all",
        (exited(500.0), replace(exited(501.0), acknowledged=True)),
        Exit(acknowledged=True),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_happened_first_is_the_cause_of_the_rest(case: Case) -> None:
    containers = [replace(each, container_rank=rank) for rank, each in enumerate(case.containers)]
    found = summarize_exit(RUN, containers, now=NOW, notice_seconds=NOTICE)
    assert found == (case.exit, case.failure)


@pytest.mark.parametrize(
    ("preempt", "deadline", "forced"),
    [(True, NOW, True), (True, NOW + 1, False), (False, NOW, False), (True, None, False)],
)
def test_who_is_asked_and_ends_after_the_deadline_was_forced(
    preempt: bool, deadline: float | None, forced: bool
) -> None:
    run = replace(RUN, preempt=preempt, signal_deadline=deadline)
    exit_, _ = summarize_exit(run, [CULPRIT], now=NOW, notice_seconds=NOTICE)
    assert exit_ == Exit(exit_code=3, forced=forced)
