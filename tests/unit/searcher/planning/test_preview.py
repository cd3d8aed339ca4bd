"""What a spec would run."""

from __future__ import annotations

import pytest
from unit.searcher.harness import drive_in_order

from resolute_searcher.planning.preview import Preview, preview
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

Endings = list[list[tuple[int, int]]]


def told(method: MethodSpec, *, space: Space | None = None) -> Preview:
    timed = isinstance(method, AsyncHalvingSpec | AdaptiveAshaSpec) and method.time_driven
    spec = SearchSpec(method=method, space=space or Space(), time_metric="t" if timed else None)
    spec.check()
    return preview(spec)


@pytest.mark.parametrize(
    ("method", "endings"),
    [
        (SingleSpec(max_length=10), [[(10, 1)]]),
        (SingleSpec(max_length=None), [[(0, 1)]]),
        (RandomSpec(max_length=10, max_trials=7), [[(10, 7)]]),
        (GridSpec(max_length=5), [[(5, 6)]]),
        (
            AdaptiveAshaSpec(max_length=900, max_trials=10, divisor=3, time_driven=True),
            [[(100, 5), (300, 1), (900, 1)], [(300, 2), (900, 1)]],
        ),
        (AdaptiveAshaSpec(max_length=64, max_trials=16), [[(4, 9), (16, 3)], [(16, 3), (64, 1)]]),
        (
            AsyncHalvingSpec(num_rungs=3, max_length=9000, max_trials=12, divisor=3),
            [[(1000, 8), (3000, 3), (9000, 1)]],
        ),
    ],
)
def test_endings_are_counted_by_length(method: MethodSpec, endings: Endings) -> None:  # as release 0.30 does
    grid = Space({"a": DoubleRange(0.0, 1.0, count=2), "b": DoubleRange(0.0, 1.0, count=3)})
    result = told(method, space=grid)
    assert [list(bracket.endings) for bracket in result.brackets] == endings
    assert result.total_units == sum(length * trials for bracket in endings for length, trials in bracket)


def test_brackets_tell_trials_and_concurrency() -> None:
    result = told(AdaptiveAshaSpec(max_length=64, max_trials=16))
    assert [(b.trials, b.concurrent_trials) for b in result.brackets] == [(12, 8), (4, 4)]


@pytest.mark.parametrize("mode", list(AdaptiveMode))
@pytest.mark.parametrize("trials", [1, 5, 16, 64])
def test_a_search_whose_trials_get_worse_runs_as_previewed(mode: AdaptiveMode, trials: int) -> None:
    # Each rung then promotes its first trials and no other: what a preview assumes.
    method = AdaptiveAshaSpec(max_length=256, max_trials=trials, mode=mode, max_concurrent_trials=1)
    run = drive_in_order(Search(SearchSpec(method=method)), float)
    trained = sum(lengths[-1] for lengths in run.in_order())
    assert trained == told(method).total_units
