"""Late data from an old run is accepted, and the effective series is computed without it."""

from __future__ import annotations

import random

import pytest
from support.services.metrics import Metrics, Report


def _losses(steps: range, value: float, *, group: str = "training", name: str = "loss") -> list[Report]:
    return [(group, step, {name: value}) for step in steps]


def test_points_of_a_run_end_at_the_first_step_of_a_later_run(metrics: Metrics) -> None:
    metrics.report(*_losses(range(10, 60, 10), 1.0))
    metrics.report(*_losses(range(30, 50, 10), 2.0), run=2)
    assert metrics.points("loss") == [(10, 1), (20, 1), (30, 2), (40, 2)]


def test_superseded_points_are_there_when_asked_for(metrics: Metrics) -> None:
    metrics.report(*_losses(range(10, 40, 10), 1.0))
    metrics.report(*_losses(range(20, 40, 10), 2.0), run=2)
    assert metrics.points("loss", include_superseded=True) == [(10, 1), (20, 1), (20, 2), (30, 1), (30, 2)]


def test_a_late_report_of_an_old_run_is_taken_and_does_not_count(metrics: Metrics) -> None:
    metrics.report(*_losses(range(10, 30, 10), 1.0))
    metrics.report(*_losses(range(30, 50, 10), 2.0), run=2)
    assert metrics.report(*_losses(range(30, 90, 10), 1.0), first=2).next_sequence == 8
    assert metrics.points("loss") == [(10, 1), (20, 1), (30, 2), (40, 2)]
    assert len(metrics.points("loss", include_superseded=True)) == 10


def test_each_group_is_cut_on_its_own(metrics: Metrics) -> None:
    metrics.report(*_losses(range(10, 60, 10), 1.0), ("validation", 50, {"loss": 1.0}))
    metrics.report(*_losses(range(30, 50, 10), 2.0), run=2)
    assert metrics.points("loss", group="validation") == [(50, 1)]


def test_a_third_run_may_go_back_behind_the_second(metrics: Metrics) -> None:
    metrics.report(*_losses(range(0, 100, 10), 1.0))
    metrics.report(*_losses(range(50, 100, 10), 2.0), run=2)
    metrics.report(*_losses(range(30, 60, 10), 3.0), run=3)
    assert metrics.points("loss") == [(0, 1), (10, 1), (20, 1), (30, 3), (40, 3), (50, 3)]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_arrival_does_not_matter(metrics: Metrics, seed: int) -> None:
    generator = random.Random(seed)
    waiting = {
        run: [("validation", step, {"accuracy": (step * 37 % 100) / 100 + run}) for step in steps]
        for run, steps in {1: range(0, 90, 10), 2: range(40, 120, 10), 3: range(70, 140, 10)}.items()
    }
    sent = dict.fromkeys(waiting, 0)
    while any(sent[run] < len(waiting[run]) for run in waiting):
        run = generator.choice([run for run in waiting if sent[run] < len(waiting[run])])
        count = generator.randint(1, 3)
        batch = waiting[run][sent[run] : sent[run] + count]
        metrics.report(*batch, first=sent[run], run=run)
        sent[run] += len(batch)
    effective = [
        (step, values["accuracy"])
        for run, end in ((1, 40), (2, 70), (3, 1000))
        for _, step, values in waiting[run]
        if step < end
    ]
    assert metrics.points("accuracy", group="validation") == effective
    best = max(effective, key=lambda point: (point[1], -point[0]))
    assert (metrics.best().experiment_best.steps, metrics.best().experiment_best.value) == best
