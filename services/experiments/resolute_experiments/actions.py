"""Applies the ordered actions of a search, each once: an action and the cursor past it commit together."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from resolute.api.searcher.v1 import search_pb2
from resolute.values import to_mapping
from resolute_experiments import signals
from resolute_experiments.ending import end_trial
from resolute_experiments.lifecycle import Moment
from resolute_experiments.settle import SearchEvent
from resolute_experiments.signals import Reason
from resolute_experiments.states import (
    ALLOCATED_TRIALS,
    ExperimentEvent,
    ExperimentState,
    TrialState,
    next_state,
)
from resolute_experiments.store import experiments, outbox, trials
from resolute_experiments.store.experiments import Experiment


def apply(
    connection: Connection, experiment_id: str, actions: Sequence[search_pb2.Action], moment: Moment
) -> int:
    """Applies actions that were not applied before, in order.

    Args:
        connection: A transaction.
        experiment_id: UUID of the experiment.
        actions: Consecutive actions.
        moment: When they are applied.

    Returns:
        The cursor: the sequence of the last action that is applied for good once the transaction commits.
    """
    for action in actions:
        experiment = experiments.get(connection, experiment_id=experiment_id)
        if action.sequence <= experiment.action_cursor:
            continue
        if experiment.state in {ExperimentState.ACTIVE, ExperimentState.PAUSED}:
            _apply_one(connection, experiment, action, moment)
        experiments.update(connection, experiment_id, action_cursor=action.sequence)
    return experiments.get(connection, experiment_id=experiment_id).action_cursor


def _apply_one(
    connection: Connection, experiment: Experiment, action: search_pb2.Action, moment: Moment
) -> None:
    if action.HasField("create_trial"):
        _create_trial(connection, experiment, action.create_trial, moment)
    elif action.HasField("run_trial"):
        _run_trial(connection, experiment, action.run_trial, moment)
    elif action.HasField("close_trial"):
        _close_trial(connection, action.close_trial.trial_id, moment)
    elif action.HasField("stop_trial"):
        _stop_trial(connection, action.stop_trial.trial_id, moment)
    elif action.HasField("shutdown"):
        _shut_down(connection, experiment, action.shutdown)


def _idle_state(experiment: Experiment) -> TrialState:
    return TrialState.PAUSED if experiment.state is ExperimentState.PAUSED else TrialState.QUEUED


def _create_trial(
    connection: Connection, experiment: Experiment, create: search_pb2.Action.CreateTrial, moment: Moment
) -> None:
    trials.insert(
        connection,
        {
            "id": create.trial_id,
            "experiment_id": experiment.id,
            "request_id": create.request_id,
            "state": _idle_state(experiment).value,
            "hparams": to_mapping(create.hparams),
            "seed": create.trial_seed,
            "restarts": 0,
            "run": 0,
            "status": "",
            "metadata": {},
            "explanation": "",
            "source_checkpoint_id": create.checkpoint_id,
            "latest_checkpoint_id": create.checkpoint_id,
            "steps_completed": 0,
            "settled_length": 0,
            "closed": False,
            "kill_requested": False,
            "queued_at": moment.now,
            "created_at": moment.now,
        },
    )
    outbox.put(
        connection,
        event_id=f"{create.trial_id}/created",
        experiment_id=experiment.id,
        kind=outbox.Kind.TRIAL_CREATED,
        payload={"request_id": create.request_id},
    )


def _run_trial(
    connection: Connection, experiment: Experiment, run: search_pb2.Action.RunTrial, moment: Moment
) -> None:
    trial = trials.get(connection, trial_id=run.trial_id)
    # A run that was settled after this action was decided has already taken the new operation into account.
    if trial.state is TrialState.WAITING and run.length > trial.settled_length:
        trials.update(connection, trial, state=_idle_state(experiment).value, queued_at=moment.now)


def _close_trial(connection: Connection, trial_id: str, moment: Moment) -> None:
    trial = trials.get(connection, trial_id=trial_id)
    trials.update(connection, trial, closed=True)
    if trial.state is TrialState.WAITING:
        end_trial(
            connection, trial, state=TrialState.COMPLETED, search_event=SearchEvent.CLOSED, now=moment.now
        )


def _stop_trial(connection: Connection, trial_id: str, moment: Moment) -> None:
    trial = trials.get(connection, trial_id=trial_id)
    if trial.ended:
        return
    trials.update(connection, trial, closed=True)
    if trial.state in ALLOCATED_TRIALS:
        signals.preempt(connection, trial, reason=Reason.SEARCH, moment=moment)
    else:
        end_trial(
            connection, trial, state=TrialState.COMPLETED, search_event=SearchEvent.CLOSED, now=moment.now
        )


def _shut_down(connection: Connection, experiment: Experiment, shutdown: search_pb2.Action.Shutdown) -> None:
    event = ExperimentEvent.SEARCH_COMPLETED
    failure = ""
    if shutdown.failure:
        event = ExperimentEvent.SEARCH_FAILED
        failure = "every trial failed; `resolute trial describe ID` shows why"
    elif shutdown.cancel:
        event = ExperimentEvent.SEARCH_CANCELED
    following = next_state(experiment.state, event, resource=experiment.label)
    experiments.update(connection, experiment.id, state=following.value, failure=failure)
