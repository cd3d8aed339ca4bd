"""What people are shown of an experiment."""

from __future__ import annotations

import pytest

from resolute.api.experiments.v1 import experiment_pb2
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.scheduling.waits import Waits
from resolute_experiments.servicers.messages.experiments import experiment_message
from resolute_experiments.states import ExperimentState, TrialState
from resolute_experiments.store.experiments import Experiment, ExperimentKind
from resolute_experiments.store.wait_reasons import Wait


def experiment(state: ExperimentState) -> Experiment:
    return Experiment(
        number=7,
        id="e",
        request_id="r",
        name="digits",
        kind=ExperimentKind.SEARCH,
        description="",
        labels=(),
        state=state,
        archived=False,
        owner="ada",
        workspace="w",
        project="p",
        config={"searcher": {"name": "single", "metric": "loss", "smaller_is_better": True}},
        progress=0.0,
        failure="",
        revision=1,
        created_at=1.0,
        ended_at=None,
        definition_sha256="",
        definition_size=0,
        search_created=True,
        action_cursor=0,
        slots_per_trial=1,
        single_node=None,
        max_slots=None,
        priority=42,
        weight=1.0,
        unmanaged=False,
        external_id="",
        retention_owed=False,
        importing=False,
        warning="",
        edit_revision=1,
        resource_pool="",
        owner_id=1,
        workspace_id=1,
        project_id=1,
    )


@pytest.mark.parametrize(
    ("state", "trial", "explanation"),
    [
        (ExperimentState.ACTIVE, TrialState.QUEUED, "needs 2 slots, 1 of 1 are free"),
        (ExperimentState.ACTIVE, TrialState.RUNNING, ""),
        (ExperimentState.PAUSED, TrialState.QUEUED, ""),
    ],
)
def test_an_experiment_of_which_a_trial_waits_says_why(
    state: ExperimentState, trial: TrialState, explanation: str
) -> None:
    waiting = WaitReasons()
    waiting.update(Waits({"e": Wait(reason="needs 2 slots, 1 of 1 are free", trial_id="t")}))
    assert waiting.explain_experiment(experiment(state), {trial.value: 1}) == explanation


@pytest.mark.parametrize(
    ("state", "trial", "activity"),
    [
        (ExperimentState.ACTIVE, TrialState.RUNNING, "RUNNING"),
        (ExperimentState.ACTIVE, TrialState.STOPPING, "STOPPING"),
        (ExperimentState.ACTIVE, TrialState.QUEUED, "QUEUED"),
        (ExperimentState.PAUSED, TrialState.STOPPING, "PAUSING"),
        (ExperimentState.PAUSED, TrialState.PAUSED, ""),
        (ExperimentState.COMPLETED, TrialState.COMPLETED, ""),
    ],
)
def test_activity_says_whether_processes_still_hold_slots(
    state: ExperimentState, trial: TrialState, activity: str
) -> None:
    message = experiment_message(experiment(state), {trial.value: 1})
    expected = f"EXPERIMENT_ACTIVITY_{activity or 'UNSPECIFIED'}"
    assert experiment_pb2.ExperimentActivity.Name(message.activity) == expected
