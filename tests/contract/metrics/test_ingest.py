"""Reports arrive exactly once, whatever is sent again."""

from __future__ import annotations

import uuid

import pytest
from support.services.metrics import Metrics, block, blocks_of, metrics_on

from resolute.errors import FailedPreconditionError, InvalidArgumentError
from resolute_metrics.limits import Limits


def test_reports_come_back_as_a_series(metrics: Metrics) -> None:
    answer = metrics.send([block("training", [0, 1, 2], [10, 20, 30], loss=[3, 2, 1], lr=[0.1, 0.2, 0.3])])
    assert answer.next_sequence == 3
    assert not answer.refusals
    assert metrics.points("loss") == [(10, 3), (20, 2), (30, 1)]
    assert metrics.points("lr") == [(10, 0.1), (20, 0.2), (30, 0.3)]
    assert list(metrics.series("loss").times) == [0, 10, 20]


def test_a_batch_that_comes_again_changes_nothing(metrics: Metrics) -> None:
    sent = [block("training", [0, 1], [1, 2], loss=[3, 2])]
    metrics.send(sent)
    assert metrics.send(sent).next_sequence == 2
    assert metrics.points("loss") == [(1, 3), (2, 2)]
    assert metrics.summaries()["training", "loss"].count == 2


def test_of_a_batch_that_overlaps_only_the_new_part_is_taken(metrics: Metrics) -> None:
    metrics.send([block("training", [0, 1], [1, 2], loss=[3, 2])])
    answer = metrics.send([block("training", [1, 2, 3], [2, 3, 4], loss=[2, 1, 0])], first=1)
    assert answer.next_sequence == 4
    assert metrics.points("loss") == [(1, 3), (2, 2), (3, 1), (4, 0)]
    assert metrics.summaries()["training", "loss"].sum == 6


def test_an_older_part_of_a_source_is_answered_with_how_far_it_has_come(metrics: Metrics) -> None:
    metrics.send([block("training", [0, 1, 2], [1, 2, 3], loss=[3, 2, 1])])
    assert metrics.send([block("training", [0], [1], loss=[3])]).next_sequence == 3


def test_a_gap_is_refused_with_the_expected_sequence(metrics: Metrics) -> None:
    metrics.send([block("training", [0], [1], loss=[3])])
    with pytest.raises(FailedPreconditionError, match="begins at sequence 5 and 1 was expected") as caught:
        metrics.send([block("training", [5], [6], loss=[3])], first=5)
    assert caught.value.metadata["expected_sequence"] == "1"


def test_sources_and_runs_count_on_their_own(metrics: Metrics) -> None:
    for number, (source, run) in enumerate([("a", 1), ("b", 1), ("a", 2)]):
        assert metrics.report(("training", number, {"loss": 1.0}), source=source, run=run).next_sequence == 1
    assert [step for step, _ in metrics.points("loss")] == [0, 1, 2]


def test_everything_is_there_after_a_restart(database_url: str) -> None:
    with metrics_on(database_url) as before:
        before.report(("training", 1, {"loss": 2.0}))
    with metrics_on(database_url) as after:
        after.trial, after.experiment = before.trial, before.experiment
        assert after.report(("training", 1, {"loss": 2.0}), ("training", 2, {"loss": 1.0})).next_sequence == 2
        assert after.points("loss") == [(1, 2), (2, 1)]


def test_a_batch_without_blocks_passes_over_reports_that_could_not_be_sent(metrics: Metrics) -> None:
    assert metrics.send([], count=1).next_sequence == 1
    assert metrics.report(("training", 1, {"loss": 2.0}), first=1).next_sequence == 2


def test_several_groups_and_name_sets_share_one_batch(metrics: Metrics) -> None:
    metrics.report(
        ("training", 1, {"loss": 3.0}),
        ("training", 1, {"lr": 0.5}),
        ("validation", 1, {"accuracy": 0.25}),
        ("training", 2, {"lr": 0.25, "loss": 2.0}),
    )
    assert metrics.points("loss") == [(1, 3), (2, 2)]
    assert metrics.points("lr") == [(1, 0.5), (2, 0.25)]
    assert metrics.points("accuracy", group="validation") == [(1, 0.25)]


def test_the_order_of_names_does_not_matter(metrics: Metrics) -> None:
    metrics.send([block("training", [0], [1], b=[2], a=[1])])
    metrics.send([block("training", [1], [2], a=[3], b=[4])], first=1)
    assert metrics.points("a") == [(1, 1), (2, 3)]
    assert metrics.points("b") == [(1, 2), (2, 4)]


@pytest.mark.parametrize("group", ["", "a.b", "x" * 501, "nul\0"])
def test_a_bad_group_is_refused_and_the_rest_is_kept(metrics: Metrics, group: str) -> None:
    answer = metrics.report((group, 1, {"loss": 1.0}), ("training", 1, {"loss": 1.0}))
    assert answer.next_sequence == 2
    assert [(refusal.sequence, "is not allowed" in refusal.message) for refusal in answer.refusals] == [
        (0, True)
    ]
    assert metrics.points("loss") == [(1, 1)]


def test_a_refusal_is_told_again_when_its_answer_was_lost(metrics: Metrics) -> None:
    reports = ("training", 1, {"loss": 1.0}), ("a.b", 1, {"loss": 1.0})
    first, again = metrics.report(*reports), metrics.report(*reports)
    assert list(first.refusals) == list(again.refusals)
    assert len(first.refusals) == 1
    assert not metrics.report(("training", 2, {"loss": 1.0}), first=2).refusals


def test_too_many_names_are_refused_with_the_limit(database_url: str) -> None:
    with metrics_on(database_url, limits=Limits(names=3)) as metrics:
        metrics.report(("training", 1, {"a": 1.0, "b": 1.0}), ("validation", 1, {"a": 1.0}))
        answer = metrics.report(("training", 2, {"c": 1.0}), ("training", 3, {"a": 1.0}), first=2)
        assert [refusal.sequence for refusal in answer.refusals] == [2]
        assert "metric 'c' is one name too many, the trial has 3 and may have 3" in answer.refusals[0].message
        assert metrics.points("a") == [(1, 1), (3, 1)]
        answer = metrics.report(("training", 9, {"c": 1.0}), run=2)
        assert len(answer.refusals) == 1


def test_too_many_combinations_of_names_are_refused(database_url: str) -> None:
    with metrics_on(database_url, limits=Limits(combinations=2)) as metrics:
        answer = metrics.report(
            ("training", 1, {"a": 1.0}), ("training", 2, {"b": 1.0}), ("training", 3, {"a": 1.0, "b": 1.0})
        )
        assert [refusal.sequence for refusal in answer.refusals] == [2]
        assert "combination of names too many, the run may have 2" in answer.refusals[0].message


def test_a_trial_cannot_change_its_experiment(metrics: Metrics) -> None:
    metrics.report(("training", 1, {"loss": 1.0}))
    with pytest.raises(InvalidArgumentError, match="belongs to another experiment"):
        metrics.report(("training", 1, {"loss": 1.0}), experiment=str(uuid.uuid4()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trial": "7"}, "trial_id is '7'; it must be a UUID"),
        ({"source": "x" * 201}, "source must be text of 1 to 200 characters"),
        ({"run": -1}, "run is -1"),
        ({"count": -1}, "count is -1"),
        ({"count": 3}, "each sequence from 0 to below 3 exactly once"),
        ({"first": -1}, "first_sequence is -1"),
    ],
)
def test_a_wrong_batch_is_an_error_that_names_the_field(
    metrics: Metrics, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        metrics.send([block("training", [0, 1], [1, 2], loss=[3, 2])], **options)


def test_many_small_batches_give_the_same_series_as_one_large_one(metrics: Metrics) -> None:
    values = [float(number % 7) for number in range(150)]
    for sequence, value in enumerate(values):
        metrics.report(("training", sequence, {"loss": value, "note": f"n{sequence}"}), first=sequence)
    assert metrics.points("loss") == list(enumerate(values))
    whole = metrics.summaries()["training", "loss"]
    metrics.trial = str(uuid.uuid4())
    metrics.send(blocks_of([("training", step, {"loss": value}) for step, value in enumerate(values)]))
    assert metrics.points("loss") == list(enumerate(values))
    one = metrics.summaries()["training", "loss"]
    assert (one.count, one.sum, one.min, one.max, one.last_number) == (
        whole.count,
        whole.sum,
        0,
        6,
        whole.last_number,
    )
