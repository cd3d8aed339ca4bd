"""Transitions of an experiment: the only code that writes its state.

The table of experiments defines the effects of an event; this module carries them out. The experiment's
state, its trials' states and the signals to running allocations change together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import Connection

from resolute_experiments.accounts.workspace_quotas import admit
from resolute_experiments.alerts.raising import raise_of_state
from resolute_experiments.states import (
    EXPERIMENTS,
    ExperimentEffect,
    ExperimentEvent,
    ExperimentState,
    Step,
    TrialEvent,
)
from resolute_experiments.store import audit, experiments, runs, trial_transitions, trials
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.timing import Timing
from resolute_experiments.transitions.signals import SignalReason
from resolute_experiments.transitions.trial import transition_trial

_F = ExperimentEffect
_TRIAL_EVENTS: Mapping[ExperimentEffect, tuple[TrialEvent, SignalReason]] = {
    _F.PAUSE_TRIALS: (TrialEvent.PAUSE, SignalReason.USER),
    _F.ACTIVATE_TRIALS: (TrialEvent.ACTIVATE, SignalReason.USER),
    _F.CANCEL_TRIALS: (TrialEvent.CANCEL, SignalReason.USER),
    _F.END_TRIALS: (TrialEvent.CANCEL, SignalReason.SEARCH),
    _F.KILL_TRIALS: (TrialEvent.KILL, SignalReason.USER),
}
"""What an effect lets happen to each trial that has not ended."""


def transition_experiment(
    connection: Connection, experiment: Experiment, event: ExperimentEvent, timing: Timing, **noted: Any
) -> None:
    """Lets something happen to an experiment.

    Args:
        connection: A transaction.
        experiment: The experiment, as that transaction sees it.
        event: What happens.
        timing: When.
        noted: Columns that are written with it, and win over those of the effects.

    Raises:
        IllegalTransitionError: It cannot happen in the experiment's state.
        QuotaError: Its workspace would use more than it may.
    """
    step = EXPERIMENTS.step(experiment.state, event, resource=experiment.label)
    if _F.ADMIT in step.effects:
        # Before it counts itself.
        slots = noted.get("config", experiment.config)["resources"]["slots_per_trial"]
        admit(connection, workspace=experiment.workspace, project=experiment.project, slots=slots)
    columns = {**_columns(experiment, step, timing), **noted}
    if columns or step.after is not experiment.state:
        experiments.update(connection, experiment.id, state=step.after.value, **columns)
    if step.after is not experiment.state:
        failed = step.after is ExperimentState.ERROR
        detail = str(columns.get("failure") or experiment.failure) if failed else ""
        raise_of_state(connection, experiment.id, step.after.value, now=timing.now, detail=detail)
    for effect in step.effects:
        if effect in _TRIAL_EVENTS:
            happens, reason = _TRIAL_EVENTS[effect]
            for trial in trials.unfinished(connection, experiment.id):
                transition_trial(connection, trial, happens, timing, reason=reason)
    if _F.REMOVE_CODE in step.effects:
        experiments.delete_contents(connection, experiment.id)
        trial_transitions.delete(connection, experiment.id)
        runs.end_holds(connection, experiment.id)
    if _F.RECORD in step.effects:
        audit.record(
            connection,
            event.name.lower(),
            experiment.label,
            now=timing.now,
            from_state=experiment.state.value,
            to_state=step.after.value,
        )


def _columns(
    experiment: Experiment, step: Step[ExperimentState, ExperimentEffect], timing: Timing
) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if step.after is not experiment.state:
        # Work outside of the cluster ends so only when it is killed.
        canceled = experiment.state is ExperimentState.STOPPING_CANCELED
        columns["killed"] = step.after is ExperimentState.CANCELED and not canceled
    if _F.END in step.effects:
        completed = step.after is ExperimentState.COMPLETED
        columns |= {"ended_at": timing.now, "progress": 1.0 if completed else experiment.progress}
    if _F.CLEAR_END in step.effects:
        columns |= {"ended_at": None, "failure": "", "archived": False}
    return columns
