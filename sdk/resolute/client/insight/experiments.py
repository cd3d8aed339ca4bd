"""The next steps of an experiment, its expected end, and the conditions that its trials wait for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from resolute.client.insight.decisions import Decision, decisions
from resolute.client.remote.searches import SearchStatus
from resolute.client.schema.records import ExperimentRecord, JobRecord, TrialRecord
from resolute.client.schema.states import ExperimentState, TrialState
from resolute.client.services import Services
from resolute.errors import NotFoundError

_RECENT_ENTRIES = 20
_MAX_OPEN = 50


@dataclass(frozen=True, kw_only=True)
class OpenTrial:
    """A trial that has not ended."""

    trial: int
    state: TrialState
    length: int | None
    """What it trains to, or has trained to; None in searches without lengths."""
    completed: bool
    """Whether it has reported that length and waits for the search."""
    closed: bool
    """Whether no more work will follow."""
    waits: str
    """Why it waits for slots, or how its last run ended; empty when there is nothing to say."""


@dataclass(frozen=True, kw_only=True)
class ExperimentExplanation:
    """The state of an experiment, its next steps, and the reasons."""

    experiment: ExperimentRecord
    search: SearchStatus | None
    """None for an experiment without a search."""
    trials_to_come: int | None
    """Trials that the search has not asked for yet, at most; None where the config does not tell."""
    open_trials: tuple[OpenTrial, ...]
    """The first of those that have not ended."""
    open_count: int
    """All that have not ended."""
    job: JobRecord | None
    """Its place in the queue; None once it has ended."""
    recent: tuple[Decision, ...]
    """The last decisions of the search, newest first."""
    expected_end: datetime | None
    """When it ends if it goes on at its pace so far; None when that is unknown."""


def explain_experiment(services: Services, key: str, *, now: datetime | None = None) -> ExperimentExplanation:
    """Collects where an experiment stands.

    Args:
        services: The cluster.
        key: Number or UUID of the experiment.
        now: The time; None for the clock's.

    Raises:
        NotFoundError: There is no such experiment.
    """
    experiment = services.experiments.get(key)
    trials = list(services.trials.list(experiment.uuid))
    numbers = {trial.trial_key: trial.id for trial in trials}
    try:
        search: SearchStatus | None = services.searches.status(experiment.uuid)
        entries = list(services.searches.log(experiment.uuid, newest_first=True, limit=_RECENT_ENTRIES))
    except NotFoundError:
        search, entries = None, []
    going_on = [trial for trial in trials if trial.end_time is None]
    jobs = [job for job in services.jobs.list() if job.experiment_id == experiment.id]
    return ExperimentExplanation(
        experiment=experiment,
        search=search,
        trials_to_come=_trials_to_come(experiment, search),
        open_trials=tuple(
            _open_trial(services, trial, searched=search is not None) for trial in going_on[:_MAX_OPEN]
        ),
        open_count=len(going_on),
        job=jobs[0] if jobs else None,
        recent=tuple(decisions(entries, numbers)),
        expected_end=_expected_end(experiment, now or datetime.now(timezone.utc)),
    )


def _open_trial(services: Services, trial: TrialRecord, *, searched: bool) -> OpenTrial:
    operation = services.searches.operation(trial.uuid) if searched else None
    return OpenTrial(
        trial=trial.id,
        state=trial.state,
        length=operation.length if operation is not None and operation.HasField("length") else None,
        completed=operation is not None and operation.completed,
        closed=operation is not None and operation.closed,
        waits=trial.explanation,
    )


def _trials_to_come(experiment: ExperimentRecord, search: SearchStatus | None) -> int | None:
    wanted = ((experiment.config or {}).get("searcher") or {}).get("max_trials")
    if search is None or not isinstance(wanted, int):
        return None
    return 0 if search.over else max(0, wanted - search.trials_requested)


def _expected_end(experiment: ExperimentRecord, now: datetime) -> datetime | None:
    began, progress = experiment.create_time, experiment.progress
    if experiment.state is not ExperimentState.ACTIVE or began is None or not 0 < progress < 1:
        return None
    return now + (now - began) * ((1 - progress) / progress)
