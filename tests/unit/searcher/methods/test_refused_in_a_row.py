"""Code that refuses every set of hyperparameters ends its search, in place of being asked for ever."""

from __future__ import annotations

from dataclasses import replace

import pytest
from unit.searcher.harness import Run

from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.contracts.values import to_value
from resolute_searcher.log.events import (
    ExitReason,
    Started,
    Suggested,
    TrialClosed,
    TrialExited,
    ValidationCompleted,
)
from resolute_searcher.log.reasons import ReasonKind
from resolute_searcher.spec.search import (
    AdaptiveAshaSpec,
    AsyncHalvingSpec,
    GridSpec,
    MethodSpec,
    RandomSpec,
    SearchSpec,
    SingleSpec,
)
from resolute_searcher.spec.space import DoubleRange, IntRange, Space
from resolute_searcher.state_machine.search import Search, fold
from resolute_searcher.state_machine.state import MOST_REFUSED_IN_A_ROW
from resolute_searcher.wire.spec import spec_from

HALVING = AsyncHalvingSpec(num_rungs=2, max_length=9, max_trials=12, divisor=3, max_concurrent_trials=4)


def begun(method: MethodSpec, space: Space | None = None) -> Run:
    space = space or Space({"x": DoubleRange(0, 1)})
    time_metric = "batches" if getattr(method, "time_driven", False) else None
    run = Run(Search(SearchSpec(method=method, space=space, seed=3, time_metric=time_metric)))
    run.record(Started())
    return run


def open_trials(run: Run) -> list[str]:
    return [key for key, trial in run.search.state.trials.items() if not trial.closed]


def refuse(run: Run, trial_key: str) -> None:
    run.record(TrialExited(trial_key, ExitReason.INVALID_HP))
    run.record(TrialClosed(trial_key))


def refuse_all(run: Run, *, most: int = 1000) -> None:
    """Refuses whatever is asked for, until the search is over."""
    while not run.search.state.over and most:
        most -= 1
        if run.search.state.awaits_suggestion:
            request = run.search.state.suggestion_request()
            assert request is not None
            run.record(Suggested(request.number, {"x": 0.5}, {}))
        else:
            refuse(run, open_trials(run)[0])


@pytest.mark.parametrize(
    "method",
    [
        RandomSpec(max_length=5, max_trials=2),
        RandomSpec(max_length=5, max_trials=300, max_concurrent_trials=7),
        HALVING,
        replace(HALVING, stop_once=True),
        AdaptiveAshaSpec(max_length=16, max_trials=12, max_rungs=3, divisor=4),
        replace(HALVING, time_driven=True),
        AdaptiveAshaSpec(max_length=900, max_trials=12, divisor=3, time_driven=True),
    ],
    ids=["random", "random-many", "promotion", "stopping", "adaptive", "by time", "adaptive by time"],
)
def test_a_search_ends_after_a_bounded_number_of_refusals(method: MethodSpec) -> None:
    run = begun(method)
    first = len(run.creates)
    refuse_all(run)
    assert MOST_REFUSED_IN_A_ROW <= len(run.creates) < MOST_REFUSED_IN_A_ROW + first
    assert run.shutdown is not None
    assert run.shutdown.failure
    assert run.shutdown.reason.kind is ReasonKind.TOO_MANY_REFUSED
    assert fold(run.search.state.spec, run.entries).state.snapshot() == run.search.state.snapshot()


def test_a_search_by_a_model_ends_too() -> None:
    settings = {"max_length": 16, "max_trials": 12, "max_concurrent_trials": 4, "sampler": "tpe"}
    message = spec_pb.SearchSpec(
        external=spec_pb.ExternalMethod(name="optuna", settings=to_value(settings)),
        space=spec_pb.Space(
            hyperparameters={"x": spec_pb.Hyperparameter(double_range=spec_pb.DoubleRange(maxval=1))}
        ),
        metric="acc",
        smaller_is_better=True,
    )
    run = Run(Search(spec_from(message)))
    run.record(Started())
    refuse_all(run)
    assert run.search.state.over
    assert len(run.creates) < MOST_REFUSED_IN_A_ROW + 4
    assert run.shutdown is not None
    assert run.shutdown.reason.kind is ReasonKind.TOO_MANY_REFUSED


def test_a_trial_that_trains_begins_the_count_anew() -> None:
    run = begun(RandomSpec(max_length=5, max_trials=3, max_concurrent_trials=2))
    trains, *_ = open_trials(run)
    for _ in range(MOST_REFUSED_IN_A_ROW + 5):
        others = [key for key in open_trials(run) if key != trains]
        if others:
            refuse(run, others[0])
    assert open_trials(run) == [trains], "no replacement is made beside it"
    assert not run.search.state.over
    run.record(ValidationCompleted(trains, 0.5, 5))
    run.record(TrialClosed(trains))
    assert run.search.state.refused_in_a_row == 0
    assert not run.search.state.over, "the search goes on"
    assert len(open_trials(run)) == 1


def test_points_of_a_grid_are_all_tried_and_a_single_trial_is_not_replaced() -> None:
    grid = begun(GridSpec(max_length=1, max_concurrent_trials=2), Space({"x": IntRange(0, 79, count=80)}))
    refuse_all(grid)
    assert len(grid.creates) == 80
    assert grid.shutdown is not None
    assert not grid.shutdown.failure
    single = begun(SingleSpec(max_length=1))
    refuse_all(single)
    assert len(single.creates) == 1
