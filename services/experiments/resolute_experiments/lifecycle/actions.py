"""Applies the ordered actions of a search, each once: an action and the new cursor are committed together."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from resolute.api.searcher.v1 import action_pb2, reason_pb2
from resolute.contracts.values import to_mapping
from resolute_experiments.lifecycle import commands
from resolute_experiments.lifecycle.action_inputs import ActionInputs, LatestCheckpoint
from resolute_experiments.states import ExperimentEvent, ExperimentState, RunOutcome, TrialEvent, TrialState
from resolute_experiments.store import experiments, outbox, runs, trials
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.timing import Timing
from resolute_experiments.transitions import transition_experiment, transition_trial
from resolute_experiments.transitions.signals import SignalReason


def apply(
    connection: Connection,
    experiment_id: str,
    actions: Sequence[action_pb2.Action],
    timing: Timing,
    answers: ActionInputs,
) -> int:
    """Applies actions that were not applied before, in order.

    What a search decides while its experiment is stopping, or has ended, waits: it is applied if the
    experiment continues.

    Args:
        connection: A transaction.
        experiment_id: UUID of the experiment.
        actions: Consecutive actions.
        timing: When they are applied.
        answers: The answers of other services about them.

    Returns:
        The cursor: the sequence of the last action that is applied for good once the transaction commits.
    """
    experiment = experiments.get(connection, experiment_id=experiment_id)
    cursor = experiment.action_cursor
    for action in actions:
        if action.sequence <= cursor:
            continue
        if experiment.state not in {ExperimentState.ACTIVE, ExperimentState.PAUSED}:
            break
        _apply_one(connection, experiment, action, timing, answers)
        if action.HasField("shutdown"):
            experiment = experiments.get(connection, experiment_id=experiment_id)
        cursor = action.sequence
    if cursor > experiment.action_cursor:
        experiments.update(connection, experiment_id, action_cursor=cursor)
    return cursor


def _apply_one(
    connection: Connection,
    experiment: Experiment,
    action: action_pb2.Action,
    timing: Timing,
    answers: ActionInputs,
) -> None:
    if action.HasField("create_trial"):
        _create_trial(connection, experiment, action, timing)
    elif action.run_trial.reopens:
        _reopen_trial(connection, experiment, action, timing, answers)
    elif action.HasField("run_trial"):
        _run_trial(connection, experiment, action, timing)
    elif action.HasField("close_trial"):
        trial = trials.get(connection, trial_id=action.close_trial.trial_id)
        transition_trial(connection, trial, TrialEvent.CLOSE, timing, search_event=action.event_sequence)
    elif action.HasField("stop_trial"):
        trial = trials.get(connection, trial_id=action.stop_trial.trial_id)
        transition_trial(
            connection,
            trial,
            TrialEvent.STOP,
            timing,
            reason=SignalReason.SEARCH,
            search_event=action.event_sequence,
        )
    elif action.HasField("shutdown") and action.sequence >= answers.last_action:
        _shut_down(connection, experiment, action, timing)


def _is_paused(experiment: Experiment) -> bool:
    return experiment.state is ExperimentState.PAUSED


def _create_trial(
    connection: Connection, experiment: Experiment, action: action_pb2.Action, timing: Timing
) -> None:
    create = action.create_trial
    trials.insert(
        connection,
        {
            "id": create.trial_id,
            "experiment_id": experiment.id,
            "request_id": create.trial_key,
            "state": (TrialState.PAUSED if _is_paused(experiment) else TrialState.QUEUED).value,
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
            "queued_at": timing.now,
            "created_at": timing.now,
        },
        search_event=action.event_sequence,
    )
    outbox.put(
        connection,
        event_id=f"{create.trial_id}/created",
        experiment_id=experiment.id,
        kind=outbox.Kind.TRIAL_CREATED,
        payload={"request_id": create.trial_key},
    )


def _run_trial(
    connection: Connection, experiment: Experiment, action: action_pb2.Action, timing: Timing
) -> None:
    run = action.run_trial
    trial = trials.get(connection, trial_id=run.trial_id)
    # A run that was settled after this action was decided has already taken the new operation into account.
    if run.length > trial.settled_length:
        transition_trial(
            connection,
            trial,
            TrialEvent.ASSIGN_OPERATION,
            timing,
            paused=_is_paused(experiment),
            search_event=action.event_sequence,
        )


def _reopen_trial(
    connection: Connection,
    experiment: Experiment,
    action: action_pb2.Action,
    timing: Timing,
    answers: ActionInputs,
) -> None:
    """Lets a trial that had ended continue, as itself, from the newest checkpoint that is still there."""
    run = action.run_trial
    trial = trials.get(connection, trial_id=run.trial_id)
    rests = 0 < run.length <= trial.settled_length
    newest = answers.newest.get(trial.id, LatestCheckpoint(trial.source_checkpoint_id, 0))
    transition_trial(
        connection,
        trial,
        TrialEvent.REOPEN_IDLE if rests else TrialEvent.REOPEN,
        timing,
        paused=_is_paused(experiment),
        search_event=action.event_sequence,
        latest_checkpoint_id=newest.checkpoint_id,
        steps_completed=newest.steps_completed,
    )


def _shut_down(
    connection: Connection, experiment: Experiment, action: action_pb2.Action, timing: Timing
) -> None:
    if action.shutdown.failure:
        failure = _failure(connection, experiment, action.reason.kind)
        commands.fail(connection, experiment, timing, failure=failure)
        return
    event = ExperimentEvent.SEARCH_CANCELED if action.shutdown.cancel else ExperimentEvent.SEARCH_COMPLETED
    transition_experiment(connection, experiment, event, timing)


def _failure(connection: Connection, experiment: Experiment, reason: reason_pb2.ReasonKind.ValueType) -> str:
    members = trials.of_experiment(connection, experiment.id)
    if not members:
        return "its search ended as failed"
    if reason == reason_pb2.REASON_KIND_TOO_MANY_REFUSED:
        last = _last_refused(connection, members)
        cause = (
            last.explanation or f"refused its hyperparameters; `resolute trial logs {last.number}` has why"
        )
        return f"50 sets of hyperparameters in a row were refused; the last: trial {last.number} {cause}"
    failed = next((trial for trial in members if trial.explanation), None)
    if failed is None:
        return f"every trial failed; `resolute trial describe {members[0].number}` shows why"
    return f"every trial failed; trial {failed.number} {failed.explanation}"


def _last_refused(connection: Connection, members: Sequence[trials.Trial]) -> trials.Trial:
    """The trial that refused its hyperparameters last; others may have trained beside it and ended later."""
    latest_first = sorted(members, key=lambda trial: (trial.ended_at or 0.0, trial.number), reverse=True)
    refused = (
        trial
        for trial in latest_first
        if any(run.outcome is RunOutcome.INVALID_HP for run in runs.of_trial(connection, trial.id))
    )
    return next(refused, latest_first[0])
