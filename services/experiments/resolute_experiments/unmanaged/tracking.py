"""Unmanaged runs: their trials are recorded and shown, but never scheduled.

Every function runs inside one transaction. An unmanaged experiment is ACTIVE while one of its trials runs.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from resolute.errors import FailedPreconditionError, InvalidArgumentError
from resolute_experiments.accounts.store.workspaces import UNCATEGORIZED
from resolute_experiments.accounts.workspace_quotas import admit, require_editor
from resolute_experiments.states import (
    EXPERIMENTS,
    GONE_EXPERIMENTS,
    RUNS,
    ExperimentEvent,
    ExperimentState,
    RunEffect,
    RunEvent,
    RunOutcome,
    TrialEvent,
    TrialState,
)
from resolute_experiments.store import audit, experiments, runs, trials
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.runs import Run
from resolute_experiments.store.trials import Trial
from resolute_experiments.timing import Timing
from resolute_experiments.transitions import transition_experiment, transition_trial
from resolute_experiments.transitions.signals import allocation_id
from resolute_serving.context import actor

MAX_EXTERNAL_ID = 256
_COMPLETED = (TrialEvent.UNMANAGED_RUN_COMPLETED, ExperimentEvent.UNMANAGED_RUNS_COMPLETED)
_FAILED = (TrialEvent.UNMANAGED_RUN_FAILED, ExperimentEvent.UNMANAGED_RUNS_FAILED)
_KILLED = (TrialEvent.UNMANAGED_RUN_KILLED, ExperimentEvent.UNMANAGED_RUNS_KILLED)
_ENDS: Mapping[RunOutcome, tuple[RunEvent, TrialEvent, ExperimentEvent]] = {
    RunOutcome.COMPLETED: (RunEvent.UNMANAGED_COMPLETED, *_COMPLETED),
    RunOutcome.FAILED: (RunEvent.UNMANAGED_FAILED, *_FAILED),
    RunOutcome.INVALID_HP: (RunEvent.UNMANAGED_INVALID, *_FAILED),
    RunOutcome.LOST: (RunEvent.UNMANAGED_LOST, *_FAILED),
    RunOutcome.KILLED: (RunEvent.UNMANAGED_KILLED, *_KILLED),
}
"""What the end of a run outside of the cluster means for it, its trial and its experiment."""


@dataclass(frozen=True, kw_only=True)
class RunStart:
    """The description of a run that starts outside of the cluster."""

    request_id: str
    """UUID that it was given there."""
    name: str
    """Name of its experiment."""
    config: dict[str, Any]
    """Its experiment's whole config, see ``admission.unmanaged_runs``."""
    hparams: dict[str, Any]
    metadata: dict[str, Any] | None
    """Free metadata of its trial; None to leave that as it is."""
    started_at: float
    """Unix time."""
    external_experiment_id: str = ""
    external_trial_id: str = ""

    @property
    def workspace(self) -> str:
        """Where a new experiment of it belongs."""
        return self.config.get("workspace") or UNCATEGORIZED


def is_new(connection: Connection, beginning: RunStart) -> bool:
    """Whether a run that begins would need an experiment that is not there."""
    if runs.by_request(connection, beginning.request_id) is not None:
        return False
    external = beginning.external_experiment_id
    return not external or experiments.by_external_id(connection, external) is None


def begin_experiment(connection: Connection, beginning: RunStart, *, timing: Timing) -> Experiment:
    """Keeps the experiment of runs to come, unless it is there; it is ACTIVE until they have ended.

    Raises:
        FailedPreconditionError: The external identifier is that of an experiment that was deleted.
        NotFoundError: The experiment is there, and the caller may not see it.
        PermissionDeniedError: The caller may not run experiments in its workspace.
    """
    experiment = _experiment(connection, beginning, now=timing.now)
    require_editor(connection, experiment.id)
    return experiment


def begin(connection: Connection, beginning: RunStart, *, timing: Timing) -> Run:
    """Keeps a run, and its experiment and trial unless they are there. A repeated request changes nothing.

    Raises:
        FailedPreconditionError: The external identifier is that of an experiment that was deleted.
        NotFoundError: Its experiment is there, and the caller may not see it.
        PermissionDeniedError: The caller may not run experiments in its workspace.
    """
    known = runs.by_request(connection, beginning.request_id)
    if known is not None:
        require_editor(connection, known.experiment_id)
        return known
    experiment = begin_experiment(connection, beginning, timing=timing)
    trial = _trial(connection, beginning, experiment)
    if trial.run:
        last = runs.get(connection, allocation_id(trial.id, trial.run))
        _end_run(connection, last, RunOutcome.LOST, "a later run of the trial has begun", timing.now)
    run = trial.run + 1
    runs.insert(connection, _run_row(beginning, trial, run), placements=())
    _go_on(connection, trial, experiment, timing, run=run)
    return runs.get(connection, allocation_id(trial.id, run))


def _go_on(
    connection: Connection, trial: Trial, experiment: Experiment, timing: Timing, **noted: Any
) -> None:
    explanation = "it runs outside of the cluster"
    event = TrialEvent.UNMANAGED_RUN_STARTED
    transition_trial(connection, trial, event, timing, explanation=explanation, **noted)
    transition_experiment(connection, experiment, ExperimentEvent.UNMANAGED_RUN_STARTED, timing)


def renew(connection: Connection, trial_id: str, run: int, *, timing: Timing) -> bool:
    """Notes that a run continues; one that counted as lost counts again.

    Returns:
        Whether it is to end: a person ended it here or deleted its experiment, or a later run has begun.

    Raises:
        InvalidArgumentError: It is a run of this cluster.
    """
    trial, kept = _find(connection, trial_id, run)
    experiment = experiments.get(connection, experiment_id=trial.experiment_id)
    if trial.run != run or experiment.state in GONE_EXPERIMENTS:
        return True
    step = RUNS.step(kept.outcome, RunEvent.UNMANAGED_RENEWED, resource=kept.label)
    if RunEffect.CLEAR_END in step.effects:
        runs.update(connection, kept.allocation_id, outcome=step.after.value, ended_at=None, failure="")
        _go_on(connection, trial, experiment, timing)
    return step.after is not RunOutcome.UNSPECIFIED


def end(
    connection: Connection,
    trial_id: str,
    run: int,
    *,
    outcome: RunOutcome,
    failure: str = "",
    left_out: Iterable[str] = (),
    timing: Timing,
) -> None:
    """Ends a run, and its trial and experiment unless they continue. What has ended stays so, unless as lost.

    Raises:
        InvalidArgumentError: It is a run of this cluster.
    """
    trial, kept = _find(connection, trial_id, run)
    experiment = experiments.get(connection, experiment_id=trial.experiment_id)
    if not _end_run(connection, kept, outcome, failure, timing.now):
        return
    runs.note_left_out(connection, kept, left_out)
    if trial.run != run or experiment.state in GONE_EXPERIMENTS:
        return
    _, trial_event, experiment_event = _ENDS[outcome]
    transition_trial(connection, trial, trial_event, timing, explanation=failure[-500:], status="")
    if not trials.any_unfinished(connection, trial.experiment_id):
        after = EXPERIMENTS.step(experiment.state, experiment_event, resource=experiment.label).after
        failed = failure if after is ExperimentState.ERROR else ""
        transition_experiment(connection, experiment, experiment_event, timing, failure=failed)


def _end_run(connection: Connection, run: Run, outcome: RunOutcome, failure: str, now: float) -> bool:
    """Writes the end of a run, unless it has ended; returns whether it was written."""
    step = RUNS.step(run.outcome, _ENDS[outcome][0], resource=run.label)
    if RunEffect.FINALIZE not in step.effects:
        return False
    runs.update(connection, run.allocation_id, outcome=step.after.value, failure=failure, ended_at=now)
    return True


def stop_trial(connection: Connection, trial: Trial, *, timing: Timing) -> None:
    """Ends one trial here; its processes hear of it when they next renew."""
    end(connection, trial.id, trial.run, outcome=RunOutcome.KILLED, timing=timing)
    audit.record(connection, "kill", trial.label, now=timing.now)


def require_managed(experiment: Experiment, wanted: str) -> None:
    """Refuses what only a cluster that runs the processes could do.

    Raises:
        FailedPreconditionError: The experiment is unmanaged.
    """
    if experiment.unmanaged:
        raise FailedPreconditionError(
            f"{experiment.label} runs outside of the cluster and cannot be {wanted} here; "
            "`resolute experiment kill` asks its script to stop",
            resource=experiment.label,
        )


def _find(connection: Connection, trial_id: str, run: int) -> tuple[Trial, Run]:
    trial = trials.get(connection, trial_id=trial_id)
    kept = runs.get(connection, allocation_id(trial_id, run))
    if kept.request_id is None:
        raise InvalidArgumentError(f"run {run} of {trial.label} is one of this cluster's own")
    return trial, kept


def _experiment(connection: Connection, beginning: RunStart, *, now: float) -> Experiment:
    external = beginning.external_experiment_id or None
    known = external and experiments.by_external_id(connection, external)
    if not known:
        row = _experiment_row(beginning, external)
        admit(connection, workspace=row["workspace"], project=row["project"], slots=0)
        created = experiments.insert(connection, row, b"")
        audit.record(connection, "begin", created.label, now=now, name=created.name)
        return created
    if known.state in GONE_EXPERIMENTS:
        raise FailedPreconditionError(
            f"the external experiment {external!r} is {known.label}, which was deleted; use another id",
            resource=known.label,
        )
    return known


def _trial(connection: Connection, beginning: RunStart, experiment: Experiment) -> Trial:
    external = beginning.external_trial_id or None
    known = external and trials.by_external_id(connection, experiment.id, external)
    if known:
        if beginning.metadata is not None:
            trials.update(connection, known, metadata=beginning.metadata)
        return known
    trial_id = str(uuid.uuid4())
    trials.insert(connection, _trial_row(beginning, experiment, trial_id, external))
    return trials.get(connection, trial_id=trial_id)


def _experiment_row(beginning: RunStart, external_id: str | None) -> dict[str, Any]:
    config = beginning.config
    return {
        "id": str(uuid.uuid4()),
        "request_id": beginning.request_id,
        "name": beginning.name,
        "description": config.get("description") or "",
        "labels": list(config.get("labels") or ()),
        "state": ExperimentState.ACTIVE.value,
        "archived": False,
        "owner": actor(),
        "workspace": beginning.workspace,
        "project": config.get("project") or UNCATEGORIZED,
        "config": config,
        "progress": 0.0,
        "failure": "",
        "revision": 1,
        "created_at": beginning.started_at,
        "definition_sha256": hashlib.sha256(b"").hexdigest(),
        "definition_size": 0,
        "search_created": False,
        "action_cursor": 0,
        "unmanaged": True,
        "external_id": external_id,
    }


def _trial_row(
    beginning: RunStart, experiment: Experiment, trial_id: str, external_id: str | None
) -> dict[str, Any]:
    return {
        "id": trial_id,
        "experiment_id": experiment.id,
        "request_id": beginning.request_id,
        "state": TrialState.RUNNING.value,
        "hparams": beginning.hparams,
        "seed": 0,
        "restarts": 0,
        "run": 0,
        "status": "",
        "metadata": beginning.metadata or {},
        "explanation": "",
        "source_checkpoint_id": "",
        "latest_checkpoint_id": "",
        "steps_completed": 0,
        "settled_length": 0,
        "closed": True,
        "kill_requested": False,
        "queued_at": beginning.started_at,
        "created_at": beginning.started_at,
        "external_id": external_id,
    }


def _run_row(beginning: RunStart, trial: Trial, run: int) -> dict[str, Any]:
    return {
        "trial_id": trial.id,
        "run": run,
        "allocation_id": allocation_id(trial.id, run),
        "experiment_id": trial.experiment_id,
        "outcome": RunOutcome.UNSPECIFIED.value,
        "failure": "",
        "slot_ids": [],
        "started_at": beginning.started_at,
        "trace_id": uuid.uuid4().hex,
        "signal_revision": 0,
        "preempt": False,
        "kill": False,
        "signal_reason": "",
        "acknowledged": False,
        "request_id": beginning.request_id,
    }
