"""The phases of a run, from the times that the services recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from resolute.client.insight.differences import RunKey
from resolute.client.schema.records import CheckpointRecord, ExperimentRecord, RunRecord, TrialRecord
from resolute.client.schema.states import CheckpointState
from resolute.client.schema.transitions import TransitionRecord
from resolute.client.services import Services
from resolute.errors import NotFoundError

_REPORTED = ("training", "validation")
"""The groups of which one report means that the first batch is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A phase of a run."""

    name: str
    """``submit``, ``queue``, ``start``, ``imports``, ``first report``, ``train``, ``checkpoint``,
    ``preemption`` or ``end``."""
    start: datetime
    end: datetime | None
    """None while it goes on."""
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The phases of a run."""

    experiment: int
    trial: int
    run: int
    phases: tuple[Phase, ...]
    """By the time of their start."""
    trace_id: str
    """Of its spans: 32 hex digits."""

    @property
    def start(self) -> datetime:
        """When it began to wait for slots, or was submitted."""
        return self.phases[0].start


@dataclass(frozen=True, kw_only=True)
class RecordedTimes:
    """The times that the services recorded of a run."""

    experiment: ExperimentRecord
    trial: TrialRecord
    run: RunRecord
    transitions: Sequence[TransitionRecord]
    """Of the trial, in order."""
    first_report: datetime | None
    checkpoints: Sequence[CheckpointRecord]
    """Of the trial."""


def read_timeline(services: Services, key: RunKey) -> Timeline:
    """Reads the phases of a run.

    Args:
        services: The cluster.
        key: The run; of a trial, the latest one.

    Raises:
        NotFoundError: There is no such trial or run, or it has had none yet.
    """
    trial = services.trials.get(key.trial)
    number = trial.run if key.run is None else key.run
    run = next((run for run in trial.runs if run.run == number), None)
    if run is None:
        raise NotFoundError(
            f"trial {trial.id} has had no run yet; `resolute explain trial {trial.id}` tells why it waits"
            if not trial.runs
            else f"trial {trial.id} has no run {number}; it has had {len(trial.runs)}"
        )
    firsts = (services.metrics.first_report(trial, run=number, group=group) for group in _REPORTED)
    return timeline(
        RecordedTimes(
            experiment=services.experiments.get(trial.experiment_uuid),
            trial=trial,
            run=run,
            transitions=list(services.trials.transitions(trial.uuid)),
            first_report=min((first for first in firsts if first is not None), default=None),
            checkpoints=list(services.checkpoints.of_trial(trial.uuid)),
        )
    )


def timeline(times: RecordedTimes) -> Timeline:
    """Makes the phases of what was recorded; a phase of which a time is missing is left out."""
    phases = sorted(_phases(times), key=lambda phase: (phase.start, phase.name != "submit"))
    return Timeline(
        experiment=times.experiment.id,
        trial=times.trial.id,
        run=times.run.run,
        phases=tuple(phases),
        trace_id=times.run.trace_id,
    )


def _phases(times: RecordedTimes) -> Iterator[Phase]:
    run = times.run
    submitted = times.experiment.create_time
    queued = _last(times.transitions, before=run.start_time, runs_before=run.run)
    if run.run == 1 and submitted is not None:
        yield Phase(name="submit", start=submitted, end=queued or run.start_time)
    if run.start_time is None:
        return
    place = _first(times.transitions, "PLACE", run.run)
    if queued is not None:
        yield Phase(name="queue", start=queued, end=run.start_time, detail=place.detail if place else "")
    slots = ", ".join(map(str, run.slot_ids))
    running = _time(_first(times.transitions, "CONFIRM_RUNNING", run.run))
    yield Phase(name="start", start=run.start_time, end=running or run.end_time, detail=f"slots {slots}")
    signal = next(
        (
            transition
            for transition in times.transitions
            if transition.run == run.run and transition.signal_reason and transition.time
        ),
        None,
    )
    stopped = run.end_time if signal is None else signal.time
    if running is not None:
        ready = run.initialize_time
        if ready is not None and running <= ready:  # the clocks of two machines may differ by more
            yield Phase(name="imports", start=running, end=ready)
            running = ready
        yield Phase(name="first report", start=running, end=times.first_report or stopped)
        if times.first_report is not None:
            yield Phase(name="train", start=times.first_report, end=stopped)
    yield from _checkpoints(times.checkpoints, run.run)
    if signal is not None and signal.time is not None:
        yield Phase(
            name="preemption", start=signal.time, end=run.end_time, detail=signal.signal_reason.lower()
        )
    if run.end_time is not None:
        yield Phase(name="end", start=run.end_time, end=run.end_time, detail=run.outcome.value.lower())


def _checkpoints(checkpoints: Iterable[CheckpointRecord], run: int) -> Iterator[Phase]:
    for checkpoint in checkpoints:
        written = checkpoint.state in (CheckpointState.COMPLETED, CheckpointState.PARTIALLY_DELETED)
        if checkpoint.run == run and checkpoint.create_time is not None and written:
            yield Phase(
                name="checkpoint",
                start=checkpoint.create_time,
                end=checkpoint.commit_time,
                detail=f"{checkpoint.uuid} after {checkpoint.steps_completed} steps",
            )


def _last(
    transitions: Iterable[TransitionRecord], *, before: datetime | None, runs_before: int
) -> datetime | None:
    """When the trial last changed its state before a run: that made it wait for slots."""
    earlier = [
        transition.time
        for transition in transitions
        if transition.time is not None
        and transition.run < runs_before
        and (before is None or transition.time <= before)
    ]
    return earlier[-1] if earlier else None


def _first(transitions: Iterable[TransitionRecord], event: str, run: int) -> TransitionRecord | None:
    return next(
        (transition for transition in transitions if transition.event == event and transition.run == run),
        None,
    )


def _time(transition: TransitionRecord | None) -> datetime | None:
    return None if transition is None else transition.time
