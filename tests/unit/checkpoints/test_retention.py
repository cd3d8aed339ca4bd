from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute.errors import InvalidArgumentError
from resolute_checkpoints.domain.checkpoint import Candidate
from resolute_checkpoints.retention.policy import KeepReason, RetentionPolicy, select_deletions


def candidate(number: int, trial: int, metric: float | None = None, *, order: int | None = None) -> Candidate:
    return Candidate(
        checkpoint_id=str(number),
        trial_id=f"trial-{trial}",
        steps_completed=100 * number,
        metric=metric,
        validation_order=number if order is None else order,
    )


DOCUMENTED = [
    candidate(1, 1),
    candidate(2, 1),
    candidate(3, 1, 0.6),
    candidate(4, 1, 0.5),
    candidate(5, 1, 0.4),
    candidate(6, 2),
    candidate(7, 2, 0.2),
    candidate(8, 2, 0.3),
    candidate(9, 2),
    candidate(10, 2),
]


def kept(candidates: list[Candidate], policy: RetentionPolicy, *, smaller: bool = True) -> set[int]:
    selection = select_deletions(candidates, policy, smaller_is_better=smaller)
    assert set(selection.kept).isdisjoint(selection.deleted)
    assert set(selection.kept) | set(selection.deleted) == {c.checkpoint_id for c in candidates}
    return {int(key) for key in selection.kept}


def test_what_a_guard_would_go_back_to_stays() -> None:
    selection = select_deletions(
        [candidate(number, 1) for number in range(1, 7)],
        RetentionPolicy(keep_restorable=True),
        smaller_is_better=True,
        good_steps={"trial-1": 350},
    )
    assert {key: value for key, value in selection.kept.items() if KeepReason.GOOD in value} == {
        "3": frozenset({KeepReason.GOOD})
    }
    assert set(selection.kept) == {"3", "6"}
    # Reports are judged a moment later: the first stays until one is known to be good.
    early = select_deletions(
        [candidate(number, 1) for number in range(1, 7)],
        RetentionPolicy(keep_restorable=True),
        smaller_is_better=True,
        good_steps={"trial-1": 0},
    )
    assert set(early.kept) == {"1", "6"}


def test_what_a_trial_went_back_behind_has_no_place() -> None:
    candidates = [candidate(1, 1, 0.5), candidate(2, 1, 0.4), candidate(3, 1, 0.1), candidate(4, 1)]
    behind = [replace(one, left_behind=one.steps_completed > 200) for one in candidates]
    assert kept(behind, RetentionPolicy(save_experiment_best=1, keep_restorable=True)) == {2}
    assert kept([replace(one, held=True) for one in behind], RetentionPolicy()) == {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("experiment_best", "trial_best", "trial_latest", "expected"),
    [
        (0, 0, 0, set()),
        (2, 0, 0, {7, 8}),
        (5, 0, 0, {3, 4, 5, 7, 8}),
        (50, 0, 0, {3, 4, 5, 7, 8}),
        (0, 1, 0, {5, 7}),
        (0, 0, 1, {5, 10}),
        (2, 1, 0, {5, 7, 8}),
        (0, 1, 1, {5, 7, 10}),
    ],
)
def test_the_documented_examples_keep_what_they_say(
    experiment_best: int, trial_best: int, trial_latest: int, expected: set[int]
) -> None:
    policy = RetentionPolicy(experiment_best, trial_best, trial_latest)
    assert kept(DOCUMENTED, policy) == expected
    shuffled = random.Random(7).sample(DOCUMENTED, len(DOCUMENTED))
    assert kept(shuffled, policy) == expected


def test_a_larger_metric_is_better_when_the_config_says_so() -> None:
    assert kept(DOCUMENTED, RetentionPolicy(2, 0, 0), smaller=False) == {3, 4}


def test_equal_metrics_are_ranked_by_the_order_of_their_validations() -> None:
    tied = [candidate(1, 1, 0.5, order=20), candidate(2, 1, 0.5, order=10)]
    assert kept(tied, RetentionPolicy(1, 0, 0)) == {2}
    assert kept(tied, RetentionPolicy(1, 0, 0), smaller=False) == {2}


def test_a_metric_that_is_not_a_number_has_no_rank() -> None:
    assert kept([candidate(1, 1, math.nan), candidate(2, 1, math.inf)], RetentionPolicy(2, 2, 0)) == {2}


@pytest.mark.parametrize("metric", [None, math.nan], ids=["no validation", "all NaN"])
def test_where_nothing_has_a_rank_the_latest_of_each_trial_stays_in_place_of_the_best(
    metric: float | None,
) -> None:
    found = [candidate(1, 1, metric), candidate(2, 1, metric), candidate(3, 2, metric)]
    assert kept(found, RetentionPolicy(0, 1, 0)) == {2, 3}
    assert kept(found, RetentionPolicy(3, 0, 0)) == {2, 3}
    assert kept(found, RetentionPolicy(0, 0, 0)) == set()
    # The best of the experiment are wanted, and there are such.
    assert kept([*found, candidate(4, 2, 0.5)], RetentionPolicy(1, 0, 0)) == {4}
    assert kept([*found, candidate(4, 2, 0.5)], RetentionPolicy(0, 1, 0)) == {2, 4}


def test_pinned_checkpoints_stay_and_say_why() -> None:
    found = [replace(c, kept=c.checkpoint_id == "5") for c in DOCUMENTED]
    selection = select_deletions(found, RetentionPolicy(0, 1, 1), smaller_is_better=True, sources={"1"})
    assert selection.kept["1"] == {KeepReason.SOURCE}
    assert selection.kept["5"] == {KeepReason.PINNED, KeepReason.TRIAL_BEST, KeepReason.TRIAL_LATEST}
    assert selection.kept["7"] == {KeepReason.TRIAL_BEST}
    assert selection.deleted == ("2", "3", "4", "6", "8", "9")


def test_of_two_checkpoints_at_the_same_step_the_later_commit_is_the_latest() -> None:
    early = Candidate(checkpoint_id="a", trial_id="t", steps_completed=5, commit_time=1.0)
    late = Candidate(checkpoint_id="b", trial_id="t", steps_completed=5, commit_time=2.0)
    selection = select_deletions([early, late], RetentionPolicy(0, 0, 1), smaller_is_better=True)
    assert selection.deleted == ("a",)


def test_what_is_read_unranked_or_awaited_stays_and_counts_among_the_others() -> None:
    found = [candidate(1, 1, 0.1), candidate(2, 1, 0.2), candidate(3, 1), candidate(4, 2), candidate(5, 2)]
    found[1] = replace(found[1], held=True)
    found[2] = replace(found[2], ranked=False)
    policy = RetentionPolicy(0, 1, 1)
    selection = select_deletions(found, policy, smaller_is_better=True, awaited={"trial-2"})
    assert selection.kept == {
        # The third was committed after the values were read: those before it may have better ones now.
        "1": {KeepReason.AWAITS_REPORTS, KeepReason.TRIAL_BEST},
        "2": {KeepReason.AWAITS_REPORTS, KeepReason.HELD},
        "3": {KeepReason.AWAITS_REPORTS, KeepReason.TRIAL_LATEST},
        "4": {KeepReason.AWAITS_REPORTS},
        "5": {KeepReason.AWAITS_REPORTS, KeepReason.TRIAL_LATEST},
    }


def test_while_trials_run_the_latest_complete_checkpoint_of_each_stays() -> None:
    found = [candidate(1, 1), candidate(2, 1), replace(candidate(3, 1), complete=False)]
    nothing = RetentionPolicy(0, 0, 0)
    assert kept(found, nothing) == set()
    assert kept(found, replace(nothing, keep_restorable=True)) == {2}


def test_milestones_are_the_first_at_or_after_each_multiple() -> None:
    # At 100, 200, ... 1000 steps.
    found = [replace(candidate(n, 1), commit_time=1800.0 * n) for n in range(1, 11)]
    nothing = RetentionPolicy(0, 0, 0)
    assert kept(found, replace(nothing, keep_every_steps=250)) == {3, 5, 8, 10}
    assert kept(found, replace(nothing, keep_every_seconds=7200)) == {1, 4, 8}
    # What stays is what stayed before.
    some = [c for c in found if c.checkpoint_id in {"3", "5", "8", "9", "10"}]
    assert kept(some, replace(nothing, keep_every_steps=250)) == {3, 5, 8, 10}


def test_periods_that_are_too_short_to_be_counted_keep_everything() -> None:
    found = [replace(candidate(n, 1), commit_time=1800.0 * n) for n in range(1, 4)]
    nothing = RetentionPolicy(0, 0, 0)
    assert kept(found, replace(nothing, keep_every_steps=5e-324)) == {1, 2, 3}
    assert kept(found, replace(nothing, keep_every_seconds=5e-324)) == {1, 2, 3}


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="save_trial_best is -1"):
        RetentionPolicy(save_trial_best=-1)


@given(
    metrics=st.lists(
        st.tuples(st.integers(0, 3), st.one_of(st.none(), st.floats(allow_nan=True))), max_size=30
    ),
    policy=st.builds(RetentionPolicy, st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)),
    smaller=st.booleans(),
)
def test_a_larger_policy_never_deletes_more(
    metrics: list[tuple[int, float | None]], policy: RetentionPolicy, smaller: bool
) -> None:
    candidates = [candidate(n, trial, metric) for n, (trial, metric) in enumerate(metrics)]
    larger = RetentionPolicy(
        policy.save_experiment_best + 1, policy.save_trial_best + 1, policy.save_trial_latest + 1
    )
    assert kept(candidates, policy, smaller=smaller) <= kept(candidates, larger, smaller=smaller)
