"""The best validation follows every write."""

from __future__ import annotations

import math
import uuid

from support.services.metrics import Metrics


def test_there_is_no_best_before_the_first_finite_validation(metrics: Metrics) -> None:
    metrics.report(("training", 1, {"accuracy": 1.0}), ("validation", 1, {"accuracy": math.nan}))
    assert not metrics.best().HasField("experiment_best")
    assert not metrics.best().trial_bests


def test_the_largest_wins_unless_smaller_is_better(metrics: Metrics) -> None:
    values = {1: 0.5, 2: 0.75, 3: 0.25}
    metrics.report(*(("validation", step, {"accuracy": value}) for step, value in values.items()))
    best = metrics.best().experiment_best
    assert (best.value, best.steps, best.metric, best.trial_id) == (0.75, 2, "accuracy", metrics.trial)
    metrics.trial, metrics.experiment = str(uuid.uuid4()), str(uuid.uuid4())
    for sequence, (step, value) in enumerate(values.items()):
        metrics.report(("validation", step, {"accuracy": value}), first=sequence, smaller=True)
    assert (metrics.best().experiment_best.value, metrics.best().experiment_best.steps) == (0.25, 3)


def test_nan_and_infinities_are_never_best(metrics: Metrics) -> None:
    values = [math.inf, 0.5, math.nan, -math.inf]
    metrics.report(*(("validation", step, {"accuracy": value}) for step, value in enumerate(values)))
    assert metrics.best().experiment_best.value == 0.5


def test_of_equal_values_the_earliest_is_best(metrics: Metrics) -> None:
    for sequence, step in enumerate((20, 10, 30)):
        metrics.report(("validation", step, {"accuracy": 0.5}), first=sequence)
    assert metrics.best().experiment_best.steps == 10


def test_the_experiment_has_the_best_of_its_trials(metrics: Metrics) -> None:
    trials = [str(uuid.uuid4()) for _ in range(3)]
    for trial, value in zip(trials, (0.1, 0.3, 0.2), strict=True):
        metrics.report(("validation", 7, {"accuracy": value}), trial=trial)
    metrics.report(
        ("validation", 7, {"accuracy": 0.9}), trial=str(uuid.uuid4()), experiment=str(uuid.uuid4())
    )
    metrics.trial = trials[2]
    best = metrics.best()
    assert (best.experiment_best.trial_id, best.experiment_best.value) == (trials[1], 0.3)
    assert [(one.trial_id, one.value) for one in best.trial_bests] == [(trials[2], 0.2)]


def test_a_superseded_validation_is_no_longer_best(metrics: Metrics) -> None:
    metrics.report(("validation", 10, {"accuracy": 0.5}), ("validation", 20, {"accuracy": 0.9}))
    metrics.report(("validation", 20, {"accuracy": 0.6}), run=2)
    assert (metrics.best().experiment_best.value, metrics.best().experiment_best.steps) == (0.6, 20)
    metrics.report(("validation", 30, {"accuracy": 0.95}), first=2)
    assert metrics.best().experiment_best.value == 0.6


def test_a_restart_that_supersedes_everything_leaves_only_its_own(metrics: Metrics) -> None:
    metrics.report(("validation", 10, {"accuracy": 0.5}))
    metrics.report(("validation", 10, {"accuracy": math.nan}), run=2)
    assert not metrics.best().HasField("experiment_best")


def test_an_unknown_experiment_has_no_best(metrics: Metrics) -> None:
    assert not metrics.best().HasField("experiment_best")
