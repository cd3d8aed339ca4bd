"""How an adaptive search is split into brackets."""

from __future__ import annotations

import pytest
from unit.searcher.harness import Run

from resolute_searcher.log.events import Started, ValidationCompleted
from resolute_searcher.log.operations import Create
from resolute_searcher.spec.adaptive import AdaptiveMode, AdaptivePlan, split_concurrency, split_trials
from resolute_searcher.spec.search import AdaptiveAshaSpec, SearchSpec
from resolute_searcher.state_machine.search import Search

AGGRESSIVE, CONSERVATIVE = AdaptiveMode.AGGRESSIVE, AdaptiveMode.CONSERVATIVE
Table = list[tuple[int, int, int]]


def table(plan: AdaptivePlan) -> Table:
    return [(b.num_rungs, b.max_trials, b.max_concurrent_trials) for b in plan.brackets()]


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (AdaptivePlan(64, 16), [(3, 12, 8), (2, 4, 8)]),
        (AdaptivePlan(64, 16, mode=AGGRESSIVE), [(3, 16, 16)]),
        (AdaptivePlan(64, 16, mode=CONSERVATIVE), [(3, 12, 6), (2, 3, 5), (1, 1, 5)]),
        (AdaptivePlan(64, 64), [(4, 45, 6), (3, 14, 5), (2, 5, 5)]),
        (AdaptivePlan(1000, 200), [(4, 138, 6), (3, 45, 5), (2, 17, 5)]),
        (AdaptivePlan(256, 500, mode=AGGRESSIVE), [(5, 500, 16)]),
        (
            AdaptivePlan(256, 500, mode=CONSERVATIVE),
            [(5, 341, 4), (4, 105, 3), (3, 35, 3), (2, 13, 3), (1, 6, 3)],
        ),
        (AdaptivePlan(900, 5, divisor=3, max_rungs=2), [(2, 3, 8), (1, 2, 8)]),
        (
            AdaptivePlan(1000, 10, divisor=3, max_concurrent_trials=5, mode=CONSERVATIVE),
            [(3, 7, 2), (2, 2, 2), (1, 1, 1)],
        ),
        # The logarithm of 243 by 3 comes out below 5, and costs the sixth rung.
        (AdaptivePlan(243, 243, divisor=3), [(5, 152, 6), (4, 63, 5), (3, 28, 5)]),
        (AdaptivePlan(243, 243, divisor=3, max_rungs=9, mode=AGGRESSIVE), [(5, 243, 16)]),
        (AdaptivePlan(1, 100), [(1, 100, 16)]),
        (AdaptivePlan(100, 1), [(1, 1, 16)]),
        (AdaptivePlan(100, 8, divisor=2, bracket_rungs=(1, 3)), [(3, 5, 8), (1, 3, 8)]),
    ],
)
def test_brackets_are_as_documented(plan: AdaptivePlan, expected: Table) -> None:  # as release 0.30 does
    assert table(plan) == expected


@pytest.mark.parametrize(
    ("plan", "lengths"),
    [
        (AdaptivePlan(64, 16), [[4, 16, 64], [16, 64]]),
        (AdaptivePlan(64, 64), [[1, 4, 16, 64], [4, 16, 64], [16, 64]]),
        (AdaptivePlan(1000, 200), [[15, 62, 250, 1000], [62, 250, 1000], [250, 1000]]),
        (AdaptivePlan(900, 5, divisor=3, max_rungs=2), [[300, 900], [900]]),
        (
            AdaptivePlan(1000, 10, divisor=3, mode=CONSERVATIVE),
            [[111, 333, 1000], [333, 1000], [1000]],
        ),
    ],
)
def test_rung_lengths_are_as_documented(
    plan: AdaptivePlan, lengths: list[list[int]]
) -> None:  # as release 0.30 does
    assert [[b.length(rung) for rung in range(b.num_rungs)] for b in plan.brackets()] == lengths


@pytest.mark.parametrize(
    ("trials", "divisor", "rungs", "expected"),
    [
        (20, 3, [3, 2, 1], [12, 5, 3]),
        (50, 3, [4, 3], [35, 15]),
        (50, 4, [3, 2], [37, 13]),
        (100, 4, [4, 3, 2], [70, 22, 8]),
        (1, 4, [3, 2, 1], [1, 1, 1]),
    ],
)
def test_trials_are_split_by_training(  # as release 0.30 does
    trials: int, divisor: float, rungs: list[int], expected: list[int]
) -> None:
    assert split_trials(trials, divisor=divisor, rungs=rungs) == expected


@pytest.mark.parametrize(
    ("concurrent", "divisor", "trials", "expected"),
    [(0, 3, [9, 3, 1], [3, 3, 3]), (11, 3, [9, 3, 1], [4, 4, 3]), (0, 4, [40, 10], [10, 10])],
)
def test_concurrency_is_split_evenly(  # as release 0.30 does
    concurrent: int, divisor: float, trials: list[int], expected: list[int]
) -> None:
    assert split_concurrency(concurrent, divisor=divisor, trials=trials) == expected


def test_brackets_begin_one_after_the_other_and_are_told_of_their_own_trials_only() -> (
    None
):  # as release 0.30 does
    method = AdaptiveAshaSpec(max_length=64, max_trials=16, max_concurrent_trials=6)
    run = Run(Search(SearchSpec(method=method)))
    started = [operation for operation in run.record(Started()) if isinstance(operation, Create)]
    assert [operation.bracket for operation in started] == [0, 0, 0, 1, 1, 1]
    assert run.in_order() == [[4]] * 3 + [[16]] * 3

    def reported() -> list[int]:
        brackets = run.search.state.snapshot()["method"]["brackets"]
        return [len(bracket["rungs"][0]["entries"]) for bracket in brackets]

    run.record(ValidationCompleted(started[4].trial_key, 0.5, 16))
    assert reported() == [0, 1]
    run.record(ValidationCompleted(started[0].trial_key, 0.5, 4))
    assert reported() == [1, 1]
    # The mean of 1 of 12 and 1 of 4 at the bottom, a fifth of each held back for the climb.
    assert run.search.state.progress() == pytest.approx((1 / (1.2 * 12) + 1 / (1.2 * 4)) / 2)


def test_brackets_are_sorted_and_can_be_given() -> None:  # as release 0.30 does
    given = AdaptivePlan(100, 8, divisor=2, bracket_rungs=(1, 3, 2))
    assert [bracket.num_rungs for bracket in given.brackets()] == [3, 2, 1]
    for mode, rungs in ((AGGRESSIVE, [4]), (AdaptiveMode.STANDARD, [4, 3, 2]), (CONSERVATIVE, [4, 3, 2, 1])):
        plan = AdaptivePlan(1000, 200, mode=mode)
        assert [bracket.num_rungs for bracket in plan.brackets()] == rungs


def test_many_brackets_with_few_trials_may_exceed_them() -> None:  # as release 0.30 does
    plan = AdaptivePlan(1000, 2, divisor=2, bracket_rungs=(3, 2, 1))
    assert [bracket.max_trials for bracket in plan.brackets()] == [1, 1, 1]
