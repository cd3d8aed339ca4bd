"""What people ask of experiments and trials, as changes of this service's own database.

Each function runs inside one transaction and leaves a consistent state behind: the experiment's state, its
trials' states and the signals to running allocations change together. Nothing here calls another service.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.engine import Connection

from resolute.errors import IllegalTransitionError
from resolute_experiments import signals, unmanaged
from resolute_experiments.ending import end_trial
from resolute_experiments.settle import SearchEvent
from resolute_experiments.signals import Reason
from resolute_experiments.states import (
    ALLOCATED_TRIALS,
    ENDED_EXPERIMENTS,
    ExperimentEvent,
    ExperimentState,
    TrialState,
    next_state,
)
from resolute_experiments.store import access, experiments, trials
from resolute_experiments.store.experiments import Experiment


@dataclass(frozen=True)
class Moment:
    """When something happens, and how long trials may take to checkpoint after it."""

    now: float
    """Unix seconds."""
    preemption_timeout: float
    """Seconds between a signal and the hard end of processes."""


def pause(connection: Connection, experiment: Experiment, moment: Moment) -> None:
    """Asks running trials to checkpoint and exit; those that wait for slots stop waiting.

    Raises:
        IllegalTransitionError: The experiment is neither active nor paused.
    """
    unmanaged.require_managed(experiment, "paused")
    if _move(connection, experiment, ExperimentEvent.PAUSE, moment) is experiment.state:
        return
    for trial in trials.unfinished(connection, experiment.id):
        if trial.state is TrialState.QUEUED:
            trials.update(connection, trial, state=TrialState.PAUSED.value)
        elif trial.state in ALLOCATED_TRIALS:
            signals.preempt(connection, trial, reason=Reason.USER, moment=moment)


def activate(connection: Connection, experiment: Experiment, moment: Moment) -> None:
    """Lets paused trials wait for slots again.

    Raises:
        IllegalTransitionError: The experiment is neither active nor paused.
    """
    unmanaged.require_managed(experiment, "activated")
    if _move(connection, experiment, ExperimentEvent.ACTIVATE, moment) is experiment.state:
        return
    for trial in trials.unfinished(connection, experiment.id):
        if trial.state is TrialState.PAUSED:
            trials.update(connection, trial, state=TrialState.QUEUED.value, queued_at=moment.now)


def cancel(connection: Connection, experiment: Experiment, moment: Moment) -> None:
    """Ends the experiment after its running trials had the chance to checkpoint.

    Raises:
        IllegalTransitionError: The experiment has ended, or is ending in another way.
    """
    unmanaged.require_managed(experiment, "cancelled")
    if _move(connection, experiment, ExperimentEvent.CANCEL, moment) is not experiment.state:
        _end_trials(connection, experiment, moment, reason=Reason.USER)


def fail(connection: Connection, experiment: Experiment, moment: Moment, *, failure: str) -> None:
    """Ends an experiment whose search cannot go on; running trials get the chance to checkpoint.

    Of an experiment that is stopping already, only the reason is noted.

    Raises:
        IllegalTransitionError: The experiment has ended.
    """
    before = experiment.state
    if _move(connection, experiment, ExperimentEvent.SEARCH_FAILED, moment) is not before:
        _end_trials(connection, experiment, moment, reason=Reason.SEARCH)
    experiments.update(connection, experiment.id, failure=failure)


def conclude(connection: Connection, experiment: Experiment, event: ExperimentEvent, moment: Moment) -> None:
    """Ends an experiment because its search shut down; trials that its client left open end with it.

    Raises:
        IllegalTransitionError: The experiment has ended.
    """
    _move(connection, experiment, event, moment)
    _end_trials(connection, experiment, moment, reason=Reason.SEARCH)


def _end_trials(connection: Connection, experiment: Experiment, moment: Moment, *, reason: Reason) -> None:
    for trial in trials.unfinished(connection, experiment.id):
        if trial.state in ALLOCATED_TRIALS:
            signals.preempt(connection, trial, reason=reason, moment=moment)
        else:
            end_trial(
                connection,
                trial,
                state=TrialState.CANCELED,
                search_event=SearchEvent.USER_CANCELED,
                now=moment.now,
            )


def kill(connection: Connection, experiment: Experiment, moment: Moment) -> None:
    """Ends the experiment at once.

    Raises:
        IllegalTransitionError: The experiment has ended.
    """
    if experiment.unmanaged:
        # Its processes are not ours: it ends here at once, and they hear of it.
        next_state(experiment.state, ExperimentEvent.KILL, resource=experiment.label)
        unmanaged.stop(connection, experiment, now=moment.now)
        return
    _move(connection, experiment, ExperimentEvent.KILL, moment)
    for trial in trials.unfinished(connection, experiment.id):
        kill_trial(connection, trial, moment)


def kill_trial(connection: Connection, trial: trials.Trial, moment: Moment) -> None:
    """Ends one trial at once; its experiment goes on.

    Raises:
        IllegalTransitionError: The trial has ended.
    """
    if trial.ended:
        raise IllegalTransitionError.between(
            trial.label, from_state=trial.state.value, to_state="CANCELED", remedy="it has ended already"
        )
    if experiments.get(connection, experiment_id=trial.experiment_id).unmanaged:
        unmanaged.stop_trial(connection, trial, now=moment.now)
    elif trial.state in ALLOCATED_TRIALS:
        trials.update(connection, trial, kill_requested=True, state=TrialState.STOPPING.value)
        signals.kill(connection, trial, moment=moment)
    else:
        end_trial(
            connection,
            trial,
            state=TrialState.CANCELED,
            search_event=SearchEvent.USER_CANCELED,
            now=moment.now,
        )


def archive(connection: Connection, experiment: Experiment, *, archived: bool, moment: Moment) -> None:
    """Hides an ended experiment from lists, or shows it again.

    Raises:
        IllegalTransitionError: The experiment has not ended.
    """
    next_state(experiment.state, ExperimentEvent.ARCHIVE, resource=experiment.label)
    experiments.update(connection, experiment.id, archived=archived)
    action = "archive" if archived else "unarchive"
    access.record(connection, action, experiment.label, now=moment.now)


def begin_deletion(connection: Connection, experiment: Experiment, moment: Moment) -> None:
    """Marks an ended experiment for removal; the reconciler removes what other services hold.

    Raises:
        IllegalTransitionError: The experiment has not ended.
    """
    _move(connection, experiment, ExperimentEvent.DELETE, moment)


def finish_if_done(connection: Connection, experiment: Experiment, *, now: float) -> ExperimentState:
    """Ends a stopping experiment once its last trial has ended, and returns its state."""
    following = (experiment.state, ExperimentEvent.LAST_TRIAL_ENDED)
    if trials.any_unfinished(connection, experiment.id):
        return experiment.state
    ended = next_state(*following, resource=experiment.label)
    progress = 1.0 if ended is ExperimentState.COMPLETED else experiment.progress
    experiments.update(connection, experiment.id, state=ended.value, ended_at=now, progress=progress)
    return ended


def _move(
    connection: Connection, experiment: Experiment, event: ExperimentEvent, moment: Moment
) -> ExperimentState:
    following = next_state(experiment.state, event, resource=experiment.label)
    if following is not experiment.state:
        experiments.update(connection, experiment.id, state=following.value)
        access.record(
            connection,
            event.name.lower(),
            experiment.label,
            now=moment.now,
            from_state=experiment.state.value,
            to_state=following.value,
        )
    return following


def is_over(experiment: Experiment) -> bool:
    """Whether watchers of the experiment have nothing more to expect."""
    return experiment.state in ENDED_EXPERIMENTS or experiment.state is ExperimentState.DELETED
