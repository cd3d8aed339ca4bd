"""How far an experiment is, in one line."""

from __future__ import annotations

import dataclasses

import pytest

from resolute.api.experiments.v1 import experiment_pb2, trial_pb2
from resolute.cli.display.experiment.progress import Progress
from resolute.client.remote.experiments import Change
from resolute.client.schema import convert
from resolute.client.schema.records import ExperimentRecord, TrialRecord, ValidationRecord
from resolute.client.schema.states import ExperimentState, TrialState


def experiment(**fields: object) -> ExperimentRecord:
    message = experiment_pb2.Experiment(
        number=7, state=experiment_pb2.EXPERIMENT_STATE_ACTIVE, searcher_name="random"
    )
    return dataclasses.replace(convert.experiment(message), **fields)  # type: ignore[arg-type]


def trial(number: int, state: TrialState, *, best: ValidationRecord | None = None) -> TrialRecord:
    record = convert.trial(trial_pb2.Trial(number=number, trial_id=f"t{number}"))
    return dataclasses.replace(record, state=state, best_validation=best)


def test_a_line_grows_with_what_is_known() -> None:
    progress = Progress(experiment())
    assert progress.line() == "experiment 7 ACTIVE · 0%"
    progress.apply(Change(experiment(activity="RUNNING", progress=0.125), (trial(2, TrialState.RUNNING),)))
    progress.apply(Change(None, (trial(1, TrialState.COMPLETED), trial(3, TrialState.QUEUED))))
    assert progress.line() == "experiment 7 RUNNING · 12% · trials: 1 running, 1 waiting, 1 done"
    progress.apply(Change(None, (trial(2, TrialState.ERROR),)))
    assert progress.line().endswith("trials: 1 waiting, 1 done, 1 failed")
    progress.apply(Change(experiment(state=ExperimentState.COMPLETED), ()))
    assert progress.line().startswith("experiment 7 COMPLETED · trials")
    assert progress.first_trial is not None
    assert progress.first_trial.id == 1


@pytest.mark.parametrize("smaller", [True, False])
def test_of_equal_trials_the_first_is_the_best_whichever_came_first(smaller: bool) -> None:
    progress = Progress(experiment(searcher_metric="accuracy", smaller_is_better=smaller))
    worse = ValidationRecord(1.5 if smaller else 0.5, 60)
    for number, best in ((3, ValidationRecord(0.98765432, 20)), (2, worse)):
        progress.apply(Change(None, (trial(number, TrialState.RUNNING, best=best),)))
    assert progress.line().endswith("best accuracy 0.987654 (trial 3, step 20)")
    progress.apply(Change(None, (trial(1, TrialState.RUNNING, best=ValidationRecord(0.98765432, 40)),)))
    assert progress.line().endswith("best accuracy 0.987654 (trial 1, step 40)")


@pytest.mark.parametrize(
    ("searcher", "trials", "is_search"), [("single", 1, False), ("random", 1, True), ("single", 2, True)]
)
def test_a_search_is_told_from_a_single_trial(searcher: str, trials: int, is_search: bool) -> None:
    progress = Progress(experiment(searcher_name=searcher))
    progress.apply(Change(None, tuple(trial(number, TrialState.RUNNING) for number in range(trials))))
    assert progress.is_search is is_search
