"""How fast training is, and how much of it waits for data."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from support.clocks import ManualClock

from resolute.runtime.batch_cost import BatchCost
from resolute.trials.counters import Progress
from resolute.trials.hyperparameters import Settings
from resolute.trials.throughput import Throughput

NOTHING_KNOWN = BatchCost()


class Segments:
    waited_seconds = 0.0


class Reported:
    """The contexts that take reports, of some rank of a trial of a cluster or of none."""

    def __init__(self, *, rank: int = 0, size: int = 1, task_type: str = "TRIAL", **hparams: Any) -> None:
        self.made: list[tuple[str, int, dict[str, float]]] = []
        trial = SimpleNamespace(hparams=hparams)
        self.info = SimpleNamespace(task_type=task_type, trial=trial) if task_type else None
        self.distributed = SimpleNamespace(rank=rank, size=size)
        self.train = SimpleNamespace(report_metrics=self._report)

    def _report(self, group: str, *, steps_completed: int, metrics: dict[str, float]) -> None:
        self.made.append((group, steps_completed, metrics))


def train(
    reported: Any, *, seconds: float = 10.0, waited: float = 3.8, cost: BatchCost = NOTHING_KNOWN
) -> Throughput:
    clock, segments, progress = ManualClock(), Segments(), Progress(100)
    throughput = Throughput(reported, cost=lambda: cost, clock=clock)
    for _ in range(2):
        with throughput.measured(progress, segments):
            progress.step += 10
            segments.waited_seconds += waited / 2
            clock.advance(seconds / 2)
        clock.advance(1000)  # a validation
    throughput.report(progress.step)
    throughput.report(progress.step)
    return throughput


def test_training_since_the_last_report_is_reported_once() -> None:
    reported = Reported(global_batch_size=32)
    train(reported)
    ((group, steps, metrics),) = reported.made
    assert (group, steps) == ("throughput", 20)
    assert metrics == pytest.approx(
        {"data_wait": 0.38, "batches_per_second": 2.0, "samples_per_second": 64.0}
    )


def test_samples_are_left_out_where_the_size_of_a_batch_is_not_known() -> None:
    reported = Reported(global_batch_size="auto")
    train(reported)
    assert set(reported.made[0][2]) == {"data_wait", "batches_per_second"}


def test_tokens_and_the_use_of_the_slots_are_reported_where_the_trial_says_what_a_batch_costs() -> None:
    reported = Reported(size=4)
    train(reported, cost=BatchCost(tokens=1000, flops=3e12, peak_flops=5e12))
    assert reported.made[0][2] == pytest.approx(
        {"data_wait": 0.38, "batches_per_second": 2.0, "tokens_per_second": 2000.0, "mfu": 0.3}
    )


def test_a_trial_says_what_its_batches_cost() -> None:
    settings = Settings(None, None, slots=1)
    assert settings.get_batch_cost() == BatchCost()
    settings.set_batch_cost(tokens=10)
    assert settings.get_batch_cost() == BatchCost(tokens=10)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tokens": 0}, "tokens is 0; a number above 0"),
        ({"flops": math.inf, "peak_flops": 1.0}, "flops is inf"),
        ({"flops": math.nan, "peak_flops": 1.0}, "flops is nan"),
        ({"flops": 1e12}, "belong together"),
    ],
)
def test_a_cost_that_says_nothing_is_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(None, None, slots=1).set_batch_cost(**wrong)


@pytest.mark.parametrize("told", [{"rank": 1}, {"task_type": ""}, {"task_type": "COMMAND"}])
def test_only_the_chief_of_a_trial_of_a_cluster_reports(told: dict[str, Any]) -> None:
    reported = Reported(**told)
    train(reported)
    assert not reported.made
