"""The conformance vectors of the documented search methods, by their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from unit.searcher.harness import Run, drive_at_random, drive_in_order

from resolute_searcher.methods.full_length import FullLengthSearch
from resolute_searcher.methods.multi_bracket import MultiBracketSearch
from resolute_searcher.spec.adaptive import AdaptiveMode
from resolute_searcher.spec.search import (
    AdaptiveAshaSpec,
    AsyncHalvingSpec,
    GridSpec,
    MethodSpec,
    RandomSpec,
    SearchSpec,
    SingleSpec,
)
from resolute_searcher.spec.space import DoubleRange, Space
from resolute_searcher.state_machine.search import Search


def search(method: MethodSpec, *, smaller: bool = True, space: Space | None = None, seed: int = 0) -> Search:
    spec = SearchSpec(method=method, smaller_is_better=smaller, space=space or Space(), seed=seed)
    spec.check()
    return Search(spec)


def constant(_: int) -> float:
    return 1.0


def number(trial: int) -> float:
    return float(trial)


def rising(trial: int) -> float:
    return trial / 100


def falling(trial: int) -> float:
    return (13 - trial) / 100


def round_robin(trial: int) -> float:
    return ((trial - 1) % 4 + 1) / 100


def asha(length: int, *, trials: int = 12, rungs: int = 3, concurrent: int = 16) -> AsyncHalvingSpec:
    return AsyncHalvingSpec(
        num_rungs=rungs, max_length=length, max_trials=trials, divisor=3, max_concurrent_trials=concurrent
    )


def stop_once(length: int, *, trials: int = 12, rungs: int = 3, concurrent: int = 16) -> AsyncHalvingSpec:
    return AsyncHalvingSpec(
        num_rungs=rungs,
        max_length=length,
        max_trials=trials,
        divisor=3,
        max_concurrent_trials=concurrent,
        stop_once=True,
    )


def counted(*groups: tuple[int, list[int]]) -> Counter[tuple[int, ...]]:
    return Counter({tuple(lengths): trials for trials, lengths in groups})


@pytest.mark.parametrize(
    ("vector", "method", "expected"),
    [
        (1, RandomSpec(max_length=19200, max_trials=4), counted((4, [19200]))),
        (2, RandomSpec(max_length=300, max_trials=4), counted((4, [300]))),
        (3, RandomSpec(max_length=100, max_trials=2, max_concurrent_trials=1), counted((2, [100]))),
        (11, asha(576000), counted((8, [64000]), (3, [64000, 192000]), (1, [64000, 192000, 576000]))),
        (12, asha(9000), counted((8, [1000]), (3, [1000, 3000]), (1, [1000, 3000, 9000]))),
        (13, asha(12), counted((8, [1]), (3, [1, 4]), (1, [1, 4, 12]))),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_the_multiset_of_lengths_is_as_documented(  # as release 0.30 does
    vector: int, method: MethodSpec, expected: Counter[tuple[int, ...]], seed: int
) -> None:
    assert drive_at_random(search(method), constant, seed=seed).multiset() == expected


@pytest.mark.parametrize(("vector", "length"), [(7, 19200), (8, 300), (9, 3)])
def test_a_grid_trains_every_point_to_the_full_length(
    vector: int, length: int
) -> None:  # as release 0.30 does
    space = Space(
        {
            "a": DoubleRange(0.0, 1.0, count=2),
            "b": DoubleRange(0.0, 1.0, count=1),
            "c": DoubleRange(0.0, 1.0, count=3),
        }
    )
    run = drive_at_random(search(GridSpec(max_length=length), space=space), constant)
    assert run.multiset() == counted((6, [length]))


@pytest.mark.parametrize(("vector", "length"), [(20, 576000), (21, 9000), (22, 12)])
def test_stop_once_lets_only_the_first_of_worsening_trials_go_on(
    vector: int, length: int
) -> None:  # as release 0.30 does
    run = drive_at_random(search(stop_once(length, concurrent=2)), number, in_turn=True)
    bottom, middle = length // 9, length // 3
    assert run.multiset() == counted((1, [bottom, middle, length]), (11, [bottom]))


FULL = [1000, 3000, 9000]
ON_THE_WAY = [[1000, 3000, 9000], *[[1000, 3000]] * 3, *[[1000]] * 8]


def by_name(run: Run) -> list[list[int]]:
    return run.in_order()


@pytest.mark.parametrize(
    ("vector", "method", "smaller", "metric", "exits", "expected"),
    [
        (
            4,
            RandomSpec(max_length=500, max_trials=4, max_concurrent_trials=2),
            True,
            constant,
            {(4, 1)},
            [[500]] * 4,
        ),
        (5, RandomSpec(max_length=32017, max_trials=4), True, constant, set(), [[32017]] * 4),
        (6, SingleSpec(max_length=500), True, constant, set(), [[500]]),
        (14, asha(9000), True, rising, set(), ON_THE_WAY),
        (16, asha(9000), False, falling, set(), ON_THE_WAY),
        (17, asha(9000), False, falling, {(3, 2)}, ON_THE_WAY),
        (19, asha(9000, trials=4, rungs=1), True, lambda t: (t + 4) / 100, set(), [[9000]] * 4),
        (24, stop_once(9000), True, round_robin, set(), [FULL, [1000], [1000], [1000]] * 3),
        (25, stop_once(9000), False, rising, set(), [FULL] * 12),
        (
            27,
            stop_once(9000),
            True,
            round_robin,
            {(5, 2)},
            [
                FULL,
                [1000],
                [1000],
                [1000],
                [1000, 3000],
                [1000],
                [1000],
                [1000],
                FULL,
                [1000],
                [1000],
                [1000],
            ],
        ),
        (29, stop_once(9000, trials=4, rungs=1), True, rising, set(), [[9000]] * 4),
    ],
)
def test_the_lengths_of_each_trial_are_as_documented(  # as release 0.30 does
    vector: int,
    method: MethodSpec,
    smaller: bool,
    metric: Callable[[int], float],
    exits: set[tuple[int, int]],
    expected: list[list[int]],
) -> None:
    assert drive_in_order(search(method, smaller=smaller), metric, exits=exits).in_order() == expected


@pytest.mark.parametrize(
    ("vector", "stops_once", "exits"), [(30, False, set()), (34, True, set()), (35, True, {(2, 1)})]
)
def test_adaptive_asha_splits_five_trials_over_two_brackets(  # as release 0.30 does
    vector: int, stops_once: bool, exits: set[tuple[int, int]]
) -> None:
    method = AdaptiveAshaSpec(max_length=900, max_trials=5, divisor=3, max_rungs=2, stop_once=stops_once)
    run = drive_in_order(search(method), lambda trial: trial / 10, exits=exits)
    assert run.in_order() == [[300, 900], [300], [300], [900], [900]]


def test_a_tournament_runs_its_brackets_side_by_side() -> None:  # as release 0.30 does
    tournament = search(RandomSpec(max_length=300, max_trials=2))
    tournament.state.method = MultiBracketSearch(
        [
            FullLengthSearch(max_length=300, max_trials=2, max_concurrent_trials=2),
            FullLengthSearch(max_length=200, max_trials=3, max_concurrent_trials=2),
        ],
        split=lambda trials: [trials - 1, 1],
    )
    assert drive_at_random(tournament, constant).multiset() == counted((2, [300]), (3, [200]))


@pytest.mark.parametrize(
    "method",
    [
        RandomSpec(max_length=300, max_trials=4),
        AdaptiveAshaSpec(max_length=6400, max_trials=128),
        AdaptiveAshaSpec(max_length=6400, max_trials=128, mode=AdaptiveMode.CONSERVATIVE, stop_once=True),
    ],
)
def test_equal_seeds_give_equal_searches(method: MethodSpec) -> None:  # as release 0.30 does
    space = Space({"x": DoubleRange(0.0, 1.0)})
    first, second = (
        drive_at_random(search(method, space=space, seed=17), constant, seed=3) for _ in range(2)
    )
    assert first.entries == second.entries
    assert [create.trial_key for create in first.creates] == [create.trial_key for create in second.creates]


@pytest.mark.parametrize(
    ("method", "metric", "expected"),
    [
        (
            AdaptiveAshaSpec(max_length=64, max_trials=16),
            number,
            [*[[4, 16]] * 3, *[[4]] * 5, [16, 64], *[[16]] * 3, *[[4]] * 4],
        ),
        (
            AdaptiveAshaSpec(max_length=64, max_trials=16, max_concurrent_trials=4),
            lambda trial: float(7 * trial % 17),
            [
                *[
                    [4],
                    [4],
                    [16, 64],
                    [16],
                    [4, 16],
                    [4],
                    [16],
                    [16],
                    [4],
                    [4, 16],
                    [4],
                    [4],
                    [4],
                    [4],
                    [4, 16],
                ],
                [4],
            ],
        ),
        (
            AsyncHalvingSpec(num_rungs=3, max_length=64, max_trials=16, max_concurrent_trials=1),
            number,
            [[4, 16, 64], *[[4, 16]] * 3, *[[4]] * 12],
        ),
        (
            AsyncHalvingSpec(
                num_rungs=3, max_length=64, max_trials=16, max_concurrent_trials=4, stop_once=True
            ),
            lambda trial: float(7 * trial % 17),
            [
                [4, 16, 64] if trial in {1, 3, 5} else [4, 16] if trial in {10, 15} else [4]
                for trial in range(1, 17)
            ],
        ),
    ],
)
def test_simulated_searches_end_as_recorded(  # as release 0.30 does
    method: MethodSpec, metric: Callable[[int], float], expected: list[list[int]]
) -> None:
    assert drive_in_order(search(method), metric).in_order() == expected
