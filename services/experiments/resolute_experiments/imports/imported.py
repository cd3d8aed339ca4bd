"""Records imported experiments with their original data. They are never scheduled.

Every function runs inside one transaction. Existing objects are not changed, so an import may be repeated.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.contracts.documents.refusals import refused_config
from resolute.errors import AlreadyExistsError, FailedPreconditionError, Violation
from resolute_experiments.accounts.store import projects
from resolute_experiments.states import GONE_EXPERIMENTS, ExperimentState, RunOutcome, TrialState
from resolute_experiments.store import audit, experiments, outbox, runs, trial_transitions, trials
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.schema import runs as run_table
from resolute_experiments.store.schema import trials as trial_table
from resolute_experiments.transitions.signals import allocation_id

_RUN = 1
"""The other cluster tells how often a trial was restarted, and not when: its history is one run."""
_OUTCOMES = {
    TrialState.COMPLETED: RunOutcome.COMPLETED,
    TrialState.CANCELED: RunOutcome.KILLED,
    TrialState.ERROR: RunOutcome.FAILED,
}


def id_of(external_id: str) -> str:
    """UUID of what has a name on another cluster: always the same."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, external_id))


@dataclass(frozen=True, kw_only=True)
class ImportedExperiment:
    """An experiment as it was on another cluster."""

    external_id: str
    name: str
    description: str
    labels: tuple[str, ...]
    notes: str
    state: ExperimentState
    archived: bool
    owner: str
    workspace: str
    project: str
    config: dict[str, Any]
    progress: float
    failure: str
    created_at: float
    ended_at: float | None
    definition: bytes
    """A gzipped tar archive; empty for none."""


@dataclass(frozen=True, kw_only=True)
class ImportedTrial:
    """A trial as it was on another cluster."""

    external_id: str
    state: TrialState
    hparams: dict[str, Any]
    restarts: int
    created_at: float
    ended_at: float | None
    explanation: str
    metadata: dict[str, Any]
    source_checkpoint_id: str


def write_experiment(connection: Connection, imported: ImportedExperiment, *, now: float) -> Experiment:
    """Writes an experiment unless it is there.

    Raises:
        FailedPreconditionError: It was deleted here.
        InvalidConfigError: Its project does not exist.
    """
    known = experiments.by_external_id(connection, imported.external_id)
    if known is not None:
        _require_kept(known)
        return known
    if projects.find(connection, imported.workspace, imported.project) is None:
        place = f"{imported.workspace}/{imported.project}"
        raise refused_config(Violation("project", f"there is no project {place!r}; import it first"))
    created = experiments.insert(connection, _experiment_row(imported), imported.definition)
    audit.record(connection, "import", created.label, now=now, external_id=imported.external_id)
    return created


def write_trials(
    connection: Connection, experiment_id: str, imported: Sequence[ImportedTrial]
) -> list[tuple[str, int]]:
    """Writes trials unless they are there; returns the UUID and the number of each.

    Raises:
        AlreadyExistsError: A trial belongs to another experiment.
        FailedPreconditionError: The experiment was deleted here, or its import is finished.
        NotFoundError: There is no such experiment.
    """
    experiment = experiments.get(connection, experiment_id=experiment_id)
    _require_kept(experiment)
    ids = [id_of(trial.external_id) for trial in imported]
    known = _numbers(connection, ids, experiment)
    new = [(id_, trial) for id_, trial in zip(ids, imported, strict=True) if id_ not in known]
    if new and not experiment.importing:
        raise FailedPreconditionError(
            f"{experiment.label} was imported as a whole before; it gets no more trials",
            resource=experiment.label,
        )
    if new:
        revision = experiments.touch(connection, experiment_id)
        rows = [_trial_row(trial, id_, experiment_id, revision=revision) for id_, trial in new]
        connection.execute(sa.insert(trial_table), rows)
        connection.execute(sa.insert(run_table), [_run_row(trial, id_, experiment_id) for id_, trial in new])
        runs.note_start(connection, experiment_id, min(trial.created_at for _, trial in new))
        trial_transitions.record(connection, *(_creation(trial, id_) for id_, trial in new))
        known = _numbers(connection, ids, experiment)
    return [(id_, known[id_]) for id_ in ids]


def finish(connection: Connection, experiment_id: str) -> None:
    """Notes that everything of an experiment has come; its controller closes its logs.

    Raises:
        NotFoundError: There is no such experiment.
    """
    experiment = experiments.get(connection, experiment_id=experiment_id)
    if not experiment.importing:
        return
    experiments.update(connection, experiment_id, importing=False)
    ids = sorted(trials.ids_of(connection, experiment_id))
    outbox.put_all(
        connection,
        experiment_id=experiment_id,
        kind=outbox.Kind.LOGS_CLOSED,
        payloads={f"{trial_id}/imported": {"trial_id": trial_id} for trial_id in ids},
    )


def _require_kept(experiment: Experiment) -> None:
    if experiment.state in GONE_EXPERIMENTS:
        raise FailedPreconditionError(
            f"{experiment.label} was imported and deleted here since; it does not come again",
            resource=experiment.label,
        )


def _numbers(connection: Connection, ids: Sequence[str], experiment: Experiment) -> dict[str, int]:
    """Numbers of those that are here, by UUID."""
    columns = trial_table.c
    query = sa.select(columns.id, columns.number, columns.experiment_id, columns.external_id)
    found = connection.execute(query.where(columns.id.in_(ids))).all()
    for row in found:
        if row.experiment_id != experiment.id:
            raise AlreadyExistsError(
                f"trial {row.number} was imported as {row.external_id!r} with another experiment than "
                f"{experiment.label}; import each trial with its own experiment",
                resource=f"trial {row.number}",
            )
    return {row.id: row.number for row in found}


def _experiment_row(imported: ImportedExperiment) -> dict[str, Any]:
    return {
        "id": id_of(imported.external_id),
        "request_id": id_of(f"{imported.external_id}/request"),
        "name": imported.name,
        "description": imported.description,
        "labels": list(imported.labels),
        "notes": imported.notes,
        "state": imported.state.value,
        "archived": imported.archived,
        "owner": imported.owner,
        "workspace": imported.workspace,
        "project": imported.project,
        "config": imported.config,
        "progress": imported.progress,
        "failure": imported.failure,
        "revision": 1,
        "created_at": imported.created_at,
        "ended_at": imported.ended_at,
        "definition_sha256": hashlib.sha256(imported.definition).hexdigest(),
        "definition_size": len(imported.definition),
        "search_created": False,
        "action_cursor": 0,
        "unmanaged": True,
        "external_id": imported.external_id,
        "importing": True,
    }


def _trial_row(
    imported: ImportedTrial, trial_id: str, experiment_id: str, *, revision: int
) -> dict[str, Any]:
    return {
        "id": trial_id,
        "experiment_id": experiment_id,
        "request_id": trial_id,
        "state": imported.state.value,
        "hparams": imported.hparams,
        "seed": 0,
        "restarts": imported.restarts,
        "run": _RUN,
        "status": "",
        "metadata": imported.metadata,
        "explanation": imported.explanation,
        "source_checkpoint_id": imported.source_checkpoint_id,
        "latest_checkpoint_id": "",
        "steps_completed": 0,
        "settled_length": 0,
        "closed": True,
        "kill_requested": False,
        "queued_at": imported.created_at,
        "created_at": imported.created_at,
        "ended_at": imported.ended_at,
        "revision": revision,
        "life": 0,
        "external_id": imported.external_id,
        "steps_due": True,
    }


def _run_row(imported: ImportedTrial, trial_id: str, experiment_id: str) -> dict[str, Any]:
    return {
        "trial_id": trial_id,
        "run": _RUN,
        "allocation_id": allocation_id(trial_id, _RUN),
        "experiment_id": experiment_id,
        "outcome": _OUTCOMES[imported.state].value,
        "failure": imported.explanation if imported.state is TrialState.ERROR else "",
        "slot_ids": [],
        "started_at": imported.created_at,
        "ended_at": imported.ended_at,
        "trace_id": uuid.UUID(id_of(f"{imported.external_id}/trace")).hex,
        "signal_revision": 0,
        "preempt": False,
        "kill": False,
        "signal_reason": "",
        "acknowledged": False,
    }


def _creation(imported: ImportedTrial, trial_id: str) -> trial_transitions.TrialTransition:
    return trial_transitions.TrialTransition(
        trial_id=trial_id,
        time=imported.created_at,
        event=trial_transitions.CREATE,
        to_state=imported.state.value,
        detail="it was imported from another cluster",
    )
