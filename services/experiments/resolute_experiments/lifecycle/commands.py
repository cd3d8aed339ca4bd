"""Users' commands on experiments and trials, as changes of this service's own database.

Each function runs inside one transaction and leaves a consistent state. Nothing here calls another service.
"""

from __future__ import annotations

from sqlalchemy.engine import Connection

from resolute_experiments.states import (
    EXPERIMENTS,
    TRIALS,
    ExperimentEvent,
    ExperimentState,
    TrialEvent,
)
from resolute_experiments.store import experiments, trials
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.timing import Timing
from resolute_experiments.transitions import transition_experiment, transition_trial
from resolute_experiments.unmanaged import tracking


def pause(connection: Connection, experiment: Experiment, timing: Timing) -> None:
    """Asks running trials to checkpoint and exit; those that wait for slots stop waiting.

    Raises:
        IllegalTransitionError: The experiment is neither active nor paused.
    """
    tracking.require_managed(experiment, "paused")
    transition_experiment(connection, experiment, ExperimentEvent.PAUSE, timing)


def activate(connection: Connection, experiment: Experiment, timing: Timing) -> None:
    """Lets paused trials wait for slots again.

    Raises:
        IllegalTransitionError: The experiment is neither active nor paused.
    """
    tracking.require_managed(experiment, "activated")
    transition_experiment(connection, experiment, ExperimentEvent.ACTIVATE, timing)


def cancel(connection: Connection, experiment: Experiment, timing: Timing) -> None:
    """Ends the experiment after its running trials had the chance to checkpoint.

    Raises:
        IllegalTransitionError: The experiment has ended, or is ending in another way.
    """
    tracking.require_managed(experiment, "cancelled")
    transition_experiment(connection, experiment, ExperimentEvent.CANCEL, timing)


def fail(connection: Connection, experiment: Experiment, timing: Timing, *, failure: str) -> None:
    """Ends an experiment whose search cannot continue; running trials get the chance to checkpoint.

    Of an experiment that is stopping already, only the reason is noted.

    Raises:
        IllegalTransitionError: The experiment has ended.
    """
    transition_experiment(connection, experiment, ExperimentEvent.SEARCH_FAILED, timing, failure=failure)


def kill(connection: Connection, experiment: Experiment, timing: Timing) -> None:
    """Ends the experiment at once.

    Raises:
        IllegalTransitionError: The experiment has ended.
    """
    if not experiment.unmanaged:
        transition_experiment(connection, experiment, ExperimentEvent.KILL, timing)
        return
    # Its processes are not ours: it ends here at once, and they hear of it.
    EXPERIMENTS.step(experiment.state, ExperimentEvent.KILL, resource=experiment.label)
    unfinished = trials.unfinished(connection, experiment.id)
    for trial in unfinished:
        tracking.stop_trial(connection, trial, timing=timing)
    if not unfinished:  # no run has begun
        transition_experiment(connection, experiment, ExperimentEvent.UNMANAGED_RUNS_KILLED, timing)


def kill_trial(connection: Connection, trial: trials.Trial, timing: Timing) -> None:
    """Ends one trial at once; its experiment continues.

    Raises:
        IllegalTransitionError: The trial has ended.
    """
    if experiments.get(connection, experiment_id=trial.experiment_id).unmanaged:
        TRIALS.step(trial.state, TrialEvent.KILL, resource=trial.label)
        tracking.stop_trial(connection, trial, timing=timing)
    else:
        transition_trial(connection, trial, TrialEvent.KILL, timing)


def archive(connection: Connection, experiment: Experiment, *, archived: bool, timing: Timing) -> None:
    """Hides an ended experiment from lists, or shows it again.

    Raises:
        IllegalTransitionError: The experiment has not ended.
    """
    event = ExperimentEvent.ARCHIVE if archived else ExperimentEvent.UNARCHIVE
    transition_experiment(connection, experiment, event, timing, archived=archived)


def begin_deletion(connection: Connection, experiment: Experiment, timing: Timing) -> None:
    """Marks an ended experiment for removal; its controller removes what other services hold.

    Raises:
        IllegalTransitionError: The experiment has not ended.
    """
    transition_experiment(connection, experiment, ExperimentEvent.DELETE, timing)


def finish_if_done(connection: Connection, experiment: Experiment, timing: Timing) -> ExperimentState:
    """Ends a stopping experiment once its last trial has ended, and returns its state."""
    if not trials.any_unfinished(connection, experiment.id):
        transition_experiment(connection, experiment, ExperimentEvent.LAST_TRIAL_ENDED, timing)
    return experiments.get(connection, experiment_id=experiment.id).state
