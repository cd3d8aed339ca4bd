"""The reaction to a bad report: the trial goes back, the experiment is paused, or only a warning is shown."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.engine import Connection

from resolute_experiments.alerts.raising import raise_of_guard
from resolute_experiments.guard import guarded_trials
from resolute_experiments.guard.guarded_trials import GuardedTrial
from resolute_experiments.states import ExperimentEvent, ExperimentState, TrialEvent
from resolute_experiments.store import experiments, runs, trials
from resolute_experiments.timing import Timing
from resolute_experiments.transitions import transition_experiment, transition_trial
from resolute_experiments.transitions.signals import SignalReason

_BEGINS = "guard: "


@dataclass(frozen=True, slots=True)
class BadReport:
    """A bad report."""

    steps: int
    fault: str
    """What is wrong with it, for people."""


def goes_back(guarded: GuardedTrial) -> bool:
    """Whether the trial goes back after a bad report."""
    return bool(guarded.guard["then"] != "warn")


def settle(
    connection: Connection, guarded: GuardedTrial, bad: BadReport | None, *, steps: int, timing: Timing
) -> bool:
    """Writes how far a trial was judged, and does what follows.

    Args:
        connection: A transaction.
        guarded: The trial, as it was judged.
        bad: The bad report that was found; None for none.
        steps: Up to here it was judged; where it goes back, up to here its reports are good.
        timing: When.

    Returns:
        Whether anything happened to the trial.
    """
    run = runs.get(connection, guarded.allocation_id)
    trial = trials.get(connection, trial_id=guarded.trial_id)
    # Another replica, or the end of its run, may have come first.
    if run.ended or run.good_steps is not None or trial.guarded_steps != guarded.guarded_steps:
        return False
    guarded_trials.store_steps(connection, trial.id, steps)
    if bad is None:
        if trial.explanation.startswith(_BEGINS):
            trials.update(connection, trial, explanation="")
        return False
    found = f"{bad.fault} at step {bad.steps}"
    if not goes_back(guarded):
        if not trial.explanation.startswith(_BEGINS):
            _note(connection, trial, run, found, timing=timing)
            trials.update(connection, trial, explanation=f"{_BEGINS}{found}")
        return False
    _go_back(connection, guarded, run, bad, steps=steps, timing=timing)
    return True


def _go_back(
    connection: Connection,
    guarded: GuardedTrial,
    run: runs.Run,
    bad: BadReport,
    *,
    steps: int,
    timing: Timing,
) -> None:
    before = len(guarded_trials.good_steps_of_runs(connection, guarded.trial_id))
    most = guarded.guard["at_most"]
    skipped = guarded.guard["skip_batches"]
    text = f"{bad.fault} at step {bad.steps}: back to the last checkpoint until step {steps}"
    text += f", {skipped} batches skipped" if skipped else ""
    if before >= most:
        text += f"; the experiment is paused, for the trial has gone back {before} times already"
    pauses = before >= most or guarded.guard["then"] == "pause"
    experiment = experiments.get(connection, experiment_id=run.experiment_id)
    if pauses and experiment.state is ExperimentState.ACTIVE:
        transition_experiment(connection, experiment, ExperimentEvent.PAUSE, timing)
    trial = trials.get(connection, trial_id=guarded.trial_id)
    runs.update(connection, run.allocation_id, good_steps=steps, bad_steps=bad.steps)
    _note(connection, trial, run, text, timing=timing)
    transition_trial(
        connection,
        trial,
        TrialEvent.GO_BACK,
        timing,
        reason=SignalReason.GUARD,
        explanation=f"{_BEGINS}{text}",
    )


def _note(connection: Connection, trial: trials.Trial, run: runs.Run, text: str, *, timing: Timing) -> None:
    runs.update(connection, run.allocation_id, guard=text)
    raise_of_guard(connection, trial, text, now=timing.now)
