"""Keeps trials that ran elsewhere and have ended, so that their history can be sent."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from resolute.errors import InvalidArgumentError
from resolute_experiments.config import parse_config
from resolute_experiments.config.parse import Layer
from resolute_experiments.quotas import admit
from resolute_experiments.states import ExperimentState, RunOutcome, TrialState
from resolute_experiments.storagespec import without_secrets
from resolute_experiments.store import access, experiments, runs, trials
from resolute_experiments.store.workspaces import UNCATEGORIZED
from resolute_serving.context import TrialRun, actor

RUN = 1
"""The only run that a recorded trial has."""
_NO_METRIC = "loss"
"""A config must name a metric; nothing searches by it."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A trial that ran elsewhere."""

    request_id: str
    """UUID that it was given there."""
    name: str
    """Name of its experiment."""
    metadata: dict[str, Any]
    """Free metadata."""
    started_at: float
    """Unix time."""
    ended_at: float
    """Unix time."""


def whole_config(name: str, *, cluster_defaults: dict[str, Any]) -> dict[str, Any]:
    """Makes the config of an experiment that never runs.

    Raises:
        ConfigError: The name is not one.
    """
    config = parse_config(
        {"name": name, "searcher": {"name": "single", "metric": _NO_METRIC}},
        layers=[Layer("cluster defaults", cluster_defaults)],
        require_entrypoint=False,
    )
    return without_secrets(config.to_dict())


def record(connection: Connection, recording: Recording, config: dict[str, Any], *, now: float) -> TrialRun:
    """Keeps a trial in an experiment of its own, both ended, so that nothing is ever scheduled for them.

    A repeated request changes nothing.

    Args:
        connection: Writes.
        recording: The trial.
        config: The experiment's whole config, see ``whole_config``.
        now: Unix time.

    Returns:
        The run whose history may be sent.

    Raises:
        InvalidArgumentError: The request created an experiment that is no recording.
    """
    known = experiments.by_request(connection, recording.request_id)
    if known is not None:
        return _run_of(connection, known)
    row = _experiment_row(recording, config)
    admit(connection, workspace=row["workspace"], project=row["project"], slots=0)
    created = experiments.insert(connection, row, [])
    trial_id = str(uuid.uuid4())
    trials.insert(connection, _trial_row(recording, created.id, trial_id))
    run = TrialRun(trial_id, RUN, created.id, f"{trial_id}.{RUN}", created.workspace)
    runs.insert(connection, _run_row(recording, run), placements=[()])
    access.record(connection, "record", created.label, now=now, name=created.name)
    return run


def _run_of(connection: Connection, experiment: experiments.Experiment) -> TrialRun:
    found = trials.of_experiment(connection, experiment.id, limit=1)
    history = runs.of_trial(connection, found[0].id) if found else []
    if experiment.definition_size or not history:
        raise InvalidArgumentError(
            f"the request {experiment.request_id} created {experiment.label}, which is no recorded trial; "
            "use a new id"
        )
    return TrialRun(found[0].id, RUN, experiment.id, history[0].allocation_id, experiment.workspace)


def _experiment_row(recording: Recording, config: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid4()),
        "request_id": recording.request_id,
        "name": recording.name,
        "description": "",
        "labels": [],
        "state": ExperimentState.COMPLETED.value,
        "archived": False,
        "owner": actor(),
        "workspace": config.get("workspace") or UNCATEGORIZED,
        "project": config.get("project") or UNCATEGORIZED,
        "config": config,
        "progress": 1.0,
        "failure": "",
        "revision": 1,
        "created_at": recording.started_at,
        "ended_at": recording.ended_at,
        "definition_sha256": hashlib.sha256(b"").hexdigest(),
        "definition_size": 0,
        "search_created": False,
        "action_cursor": 0,
    }


def _trial_row(recording: Recording, experiment_id: str, trial_id: str) -> dict[str, Any]:
    return {
        "id": trial_id,
        "experiment_id": experiment_id,
        "request_id": recording.request_id,
        "state": TrialState.COMPLETED.value,
        "hparams": {},
        "seed": 0,
        "restarts": 0,
        "run": RUN,
        "status": "",
        "metadata": recording.metadata,
        "explanation": "it ran elsewhere and was recorded",
        "source_checkpoint_id": "",
        "latest_checkpoint_id": "",
        "steps_completed": 0,
        "settled_length": 0,
        "closed": True,
        "kill_requested": False,
        "queued_at": recording.started_at,
        "created_at": recording.started_at,
        "ended_at": recording.ended_at,
    }


def _run_row(recording: Recording, run: TrialRun) -> dict[str, Any]:
    return {
        "trial_id": run.trial_id,
        "run": run.run,
        "allocation_id": run.allocation_id,
        "experiment_id": run.experiment_id,
        "outcome": RunOutcome.COMPLETED.value,
        "failure": "",
        "slot_ids": [],
        "started_at": recording.started_at,
        "ended_at": recording.ended_at,
        "trace_id": uuid.uuid4().hex,
        "signal_revision": 0,
        "preempt": False,
        "kill": False,
        "signal_reason": "",
        "acknowledged": False,
    }
