"""Preemption as scripts see it."""

from pathlib import Path

import pytest
from support.training.ranks.threads import rank_outcomes, rank_results

from resolute.contracts.run.shared_memory.flags import Flags
from resolute.core import (
    DistributedContext,
    DummyDistributedContext,
    DummyPreemptContext,
    PreemptContext,
    PreemptMode,
)
from resolute.testing import simulate_preemption


def context_on(
    flags: Flags, *, dist: DistributedContext | None = None, mode: PreemptMode = PreemptMode.WorkersAskChief
) -> PreemptContext:
    context = PreemptContext(dist or DummyDistributedContext(), mode, open_signal=lambda: flags)
    context.start()
    return context


@pytest.fixture
def flags(tmp_path: Path) -> Flags:
    return Flags.create(tmp_path / "flags")


def test_the_signal_is_seen_at_once(flags: Flags, tmp_path: Path) -> None:
    context = context_on(flags)
    assert not context.should_preempt()
    Flags(tmp_path / "flags").set_signal(revision=3, preempt=True)
    assert context.should_preempt()


def test_seeing_the_signal_promises_to_exit(flags: Flags) -> None:
    context = context_on(flags)
    flags.set_signal(revision=3, preempt=True)
    context.should_preempt()
    assert flags.acknowledged
    assert flags.acknowledged_revision == 3


def test_the_promise_can_be_left_to_the_script(flags: Flags) -> None:
    context = context_on(flags)
    flags.set_signal(revision=3, preempt=True)
    assert context.should_preempt(auto_ack=False)
    assert not flags.acknowledged
    context.acknowledge_preemption_signal()
    assert flags.acknowledged


def test_a_signal_can_be_taken_back(flags: Flags) -> None:
    context = context_on(flags)
    flags.set_signal(revision=1, preempt=True)
    flags.set_signal(revision=2, preempt=False)
    assert not context.should_preempt()


def test_an_older_signal_changes_nothing(flags: Flags) -> None:
    flags.set_signal(revision=2, preempt=True)
    flags.set_signal(revision=1, preempt=False)
    assert flags.preempt


def test_asking_before_the_start_is_an_error() -> None:
    context = DummyPreemptContext(DummyDistributedContext())
    with pytest.raises(RuntimeError, match=r"cannot call.*should_preempt.*before.*start"):
        context.should_preempt()
    with pytest.raises(RuntimeError, match=r"cannot call.*before.*start"):
        context.acknowledge_preemption_signal()


def test_starting_twice_is_an_error() -> None:
    context = DummyPreemptContext(DummyDistributedContext())
    context.start()
    with pytest.raises(RuntimeError, match="started already"):
        context.start()


def test_all_workers_get_what_the_chief_saw(tmp_path: Path) -> None:
    def work(dist: DistributedContext) -> tuple[bool, bool]:
        flags = Flags.create(tmp_path / f"flags{dist.rank}")
        context = context_on(flags, dist=dist)
        before = context.should_preempt()
        if dist.rank == 0:
            flags.set_signal(revision=1, preempt=True)
        return before, context.should_preempt()

    assert rank_results(3, work) == [(False, True)] * 3


def test_only_the_chief_may_ask_in_chief_only_mode(tmp_path: Path) -> None:
    def work(dist: DistributedContext) -> bool:
        flags = Flags.create(tmp_path / f"flags{dist.rank}")
        return context_on(flags, dist=dist, mode=PreemptMode.ChiefOnly).should_preempt()

    chief, worker = rank_outcomes(2, work)
    assert chief is False
    with pytest.raises(RuntimeError, match=r"should_preempt.*called from non-chief"):
        raise worker


def test_every_worker_sees_for_itself_when_it_asks_the_master(tmp_path: Path) -> None:
    def work(dist: DistributedContext) -> bool:
        flags = Flags.create(tmp_path / f"flags{dist.rank}")
        flags.set_signal(revision=1, preempt=dist.rank == 1)
        return context_on(flags, dist=dist, mode=PreemptMode.WorkersAskMaster).should_preempt()

    assert rank_results(2, work) == [False, True]


def test_off_cluster_nobody_preempts() -> None:
    context = DummyPreemptContext(DummyDistributedContext())
    context.start()
    assert not context.should_preempt()


def test_scripts_can_be_tested_with_a_simulated_preemption() -> None:
    with simulate_preemption(after_checks=2) as signal:
        context = DummyPreemptContext(DummyDistributedContext())
        context.start()
        assert [context.should_preempt() for _ in range(4)] == [False, False, True, True]
    assert signal.acknowledged
    assert signal.checks == 4


def test_a_simulated_preemption_can_come_at_any_time() -> None:
    with simulate_preemption(after_checks=10**9) as signal:
        context = DummyPreemptContext(DummyDistributedContext())
        context.start()
        assert not context.should_preempt()
        signal.request()
        assert context.should_preempt()


def test_the_modes_have_their_documented_values() -> None:
    assert [mode.value for mode in PreemptMode] == ["WORKERS_ASK_CHIEF", "CHIEF_ONLY", "WORKERS_ASK_MASTER"]
