"""Reports at the same step of a run merge by name; of two values of a metric one counts."""

from __future__ import annotations

import math

import pytest
from support.services.metrics import Metrics, blocks_of

from resolute.contracts.values import from_value


def test_other_names_at_the_same_step_are_merged(metrics: Metrics) -> None:
    metrics.report(("training", 5, {"loss": 1.0}))
    assert not metrics.report(("training", 5, {"lr": 0.5}), first=1).refusals
    assert metrics.points("loss") == [(5, 1)]
    assert metrics.points("lr") == [(5, 0.5)]


@pytest.mark.parametrize("value", [1.5, math.nan, math.inf, "text", None, True, [1, 2.5], 2**60])
def test_the_same_value_again_adds_nothing(metrics: Metrics, value: object) -> None:
    metrics.report(("training", 5, {"loss": value}))
    answer = metrics.report(("training", 5, {"loss": value, "lr": 0.5}), first=1)
    assert not answer.refusals
    found = metrics.summaries()
    assert found["training", "loss"].count + found["training", "loss"].nonfinite_count <= 1
    assert metrics.points("lr") == [(5, 0.5)]


@pytest.mark.parametrize(
    ("before", "now"), [(1.0, 2.0), (1.0, math.nan), (1.0, "1"), (True, 1.0), ("a", "b")]
)
def test_the_last_of_several_values_counts(metrics: Metrics, before: object, now: object) -> None:
    metrics.report(("training", 5, {"loss": before}))
    answer = metrics.report(("training", 5, {"loss": now, "lr": 0.5}), first=1)
    assert [refusal.sequence for refusal in answer.refusals] == [1]
    assert "group 'training' at step 5: metric 'loss' was reported as" in answer.refusals[0].message
    assert "the last counts; report each metric once a step" in answer.refusals[0].message
    assert metrics.points("lr") == [(5, 0.5)]
    summary = metrics.summaries()["training", "loss"]
    last = summary.last_number if isinstance(now, float) else from_value(summary.last_value)
    assert repr(last) == repr(now)
    # What counts is nothing new when it comes again; what was replaced is.
    assert not metrics.report(("training", 5, {"loss": now}), first=2).refusals
    assert metrics.report(("training", 5, {"loss": before}), first=3).refusals


@pytest.mark.parametrize(("group", "counts"), [("validation", 1.0), ("training", 2.0)])
def test_the_first_value_of_the_metric_of_the_search_counts(
    metrics: Metrics, group: str, counts: float
) -> None:
    metrics.report((group, 5, {"loss": 1.0, "acc": 1.0}), metric="loss")
    answer = metrics.report((group, 5, {"acc": 2.0, "loss": 2.0}), first=1, metric="loss")
    assert len(answer.refusals) == 1
    assert metrics.points("loss", group=group) == [(5, counts)]
    assert metrics.points("acc", group=group) == [(5, 2)]


def test_contradictions_within_one_batch_are_found(metrics: Metrics) -> None:
    answer = metrics.send(
        blocks_of(
            [
                ("training", 1, {"loss": 1.0}),
                ("training", 2, {"loss": 2.0}),
                ("training", 2, {"loss": 2.5, "lr": 0.5}),
                ("training", 2, {"loss": 2.0, "lr": 0.25}),
                ("training", 1, {"loss": 9.0}),
                ("training", 3, {"loss": 3.0}),
            ]
        )
    )
    assert [refusal.sequence for refusal in answer.refusals] == [2, 3, 4]
    assert metrics.points("loss") == [(1, 9), (2, 2), (3, 3)]
    assert metrics.points("lr") == [(2, 0.25)]


def test_steps_may_go_back_where_nothing_was_reported(metrics: Metrics) -> None:
    metrics.send(blocks_of([("training", step, {"loss": float(step)}) for step in range(10, 1000, 10)]))
    answer = metrics.report(("training", 15, {"loss": 1.5}), ("training", 20, {"loss": 7.0}), first=99)
    assert [refusal.sequence for refusal in answer.refusals] == [100]
    assert metrics.points("loss")[:3] == [(10, 10), (15, 1.5), (20, 7)]


def test_groups_and_runs_do_not_contradict_each_other(metrics: Metrics) -> None:
    assert not metrics.report(("training", 1, {"loss": 1.0}), ("validation", 1, {"loss": 2.0})).refusals
    assert not metrics.report(("training", 1, {"loss": 3.0}), run=2).refusals
    assert metrics.points("loss") == [(1, 3)]


def test_contradictions_are_found_after_small_blocks_were_put_together(metrics: Metrics) -> None:
    for step in range(100):
        metrics.report(("training", step, {"loss": float(step)}), first=step)
    answer = metrics.report(("training", 3, {"loss": 3.0}), ("training", 50, {"loss": 1.0}), first=100)
    assert [refusal.sequence for refusal in answer.refusals] == [101]
    assert metrics.points("loss")[50] == (50, 1)
