"""Lets a trial of one cluster go on at its checkpoint on another."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resolute.client.downloads.model_definition import save_model_definition
from resolute.client.remote.experiments import Submission
from resolute.client.schema.records import CheckpointRecord, ExperimentRecord, TrialRecord
from resolute.client.schema.states import CheckpointState, TrialState
from resolute.client.services import Services
from resolute.client.submission.config import config_text, with_overrides
from resolute.client.submission.git_state import GitState
from resolute.client.submission.packing import Archive
from resolute.core.unmanaged.sync import SyncResult, sync
from resolute.errors import FailedPreconditionError, NotFoundError
from resolute.promotion.checkpoint_copy import PROMOTED_TO, copy_checkpoint
from resolute.promotion.history import record_history

_NAMESPACE = uuid.UUID("2f6b1a3e-3c1c-4d54-9d6a-7f3d8f5f0b11")
_SEND_SECONDS = 3600.0
_OF_A_CLUSTER = ("checkpoint_storage", "workspace", "project", "bind_mounts")
"""Fields of a config that mean something on one cluster only."""


@dataclass(frozen=True, kw_only=True)
class Promoted:
    """What has become of a trial on another cluster."""

    trial: int
    """Number there of the trial with its history."""
    checkpoint: str
    """UUID there of its checkpoint."""
    experiment: int | None
    """Number there of the experiment that goes on; None if its command is not known."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Promotion:
    """What is promoted. Its identifiers follow from what it is: a repeated call makes nothing twice."""

    cluster_id: str
    trial: TrialRecord
    experiment: ExperimentRecord
    checkpoint: CheckpointRecord

    def identifier(self, purpose: str) -> str:
        name = f"{self.cluster_id} {self.trial.uuid} {self.checkpoint.uuid} {purpose}"
        return str(uuid.uuid5(_NAMESPACE, name))

    @property
    def lineage(self) -> dict[str, Any]:
        return {
            "cluster_id": self.cluster_id,
            "trial": self.trial.id,
            "trial_id": self.trial.uuid,
            "experiment": self.experiment.id,
            "checkpoint_id": self.checkpoint.uuid,
            "steps_completed": self.checkpoint.steps_completed,
        }


def promote(
    source: Services, target: Services, key: str, *, directory: Path, overrides: Sequence[str] = ()
) -> Promoted:
    """Copies a trial's history and its latest checkpoint to another cluster, and continues from it there.

    Nothing of the source changes, except that its checkpoint's metadata tell where the copy is.

    Args:
        source: The cluster of the trial.
        target: The other one.
        key: Number or UUID of the trial.
        directory: Takes what is on its way; it is removed at the end.
        overrides: Changes of the config of the experiment there, ``field.below=value`` each.

    Raises:
        NotFoundError: There is no such trial, or it has no checkpoint.
        FailedPreconditionError: Both are one cluster, or the store of the target cannot be reached from here.
        DataLossError: The copy of the checkpoint is not what the original is.
        DeadlineError: Not everything was sent in time; the next call goes on.
    """
    found = _find(source, target, key)
    place = directory / found.identifier("directory")
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    run = record_history(
        source, found.trial, place, run_id=found.identifier("run"), metadata={"promoted_from": found.lineage}
    )
    begun = target.trials.begin(run)
    checkpoint_id = found.identifier("checkpoint")
    copy_checkpoint(
        found.checkpoint,
        source=source,
        target=target,
        begun=begun,
        checkpoint_id=checkpoint_id,
        lineage=found.lineage,
        directory=place,
    )
    # A promotion that was completed before is not sent again: it would have other sources.
    whole = begun.trial.state is TrialState.COMPLETED
    sent = SyncResult(begun.trial, ()) if whole else sync(target, run, timeout=_SEND_SECONDS)
    created, warnings = _continue(source, target, found, checkpoint_id, place=place, overrides=overrides)
    copies = found.checkpoint.metadata.get(PROMOTED_TO) or {}
    here = {"trial": sent.trial.id, "checkpoint_id": checkpoint_id}
    source.checkpoints.update_metadata(
        found.checkpoint.uuid, {PROMOTED_TO: {**copies, begun.cluster_id: here}}
    )
    shutil.rmtree(place)
    return Promoted(
        trial=sent.trial.id,
        checkpoint=checkpoint_id,
        experiment=None if created is None else created.id,
        warnings=(*sent.refusals, *warnings),
    )


def _find(source: Services, target: Services, key: str) -> _Promotion:
    cluster_id = source.cluster.get().cluster_id
    if target.cluster.get().cluster_id == cluster_id:
        raise FailedPreconditionError(
            "the trial is on that cluster already; `resolute trial continue` goes on with it there"
        )
    trial = source.trials.get(key)
    written = [
        one for one in source.checkpoints.of_trial(trial.uuid) if one.state is CheckpointState.COMPLETED
    ]
    if not written:
        raise NotFoundError(f"trial {trial.id} has no checkpoint to go on from")
    newest = max(written, key=lambda one: one.steps_completed)
    return _Promotion(
        cluster_id=cluster_id,
        trial=trial,
        experiment=source.experiments.get(trial.experiment_uuid),
        checkpoint=source.checkpoints.get(newest.uuid),  # lists leave out files where there are many
    )


def _continue(
    source: Services,
    target: Services,
    found: _Promotion,
    checkpoint_id: str,
    *,
    place: Path,
    overrides: Sequence[str],
) -> tuple[ExperimentRecord | None, tuple[str, ...]]:
    """Submits the code again, with a search of one trial that starts from the copy."""
    config = _config(found, checkpoint_id)
    if not config.get("entrypoint"):
        return None, ()
    code = source.experiments.get(found.experiment.uuid).source
    submission = Submission(
        config=config_text(with_overrides(config, overrides)),
        request_id=found.identifier("experiment"),
        source=None
        if code is None
        else GitState(
            commit=code.git_commit,
            branch=code.git_branch,
            diff=code.git_diff,
            truncated=code.git_diff_truncated,
        ),
    )
    path = place / "code.tgz"
    if found.experiment.model_definition_size:
        save_model_definition(source.experiments, found.experiment.uuid, path)
    else:
        path.write_bytes(b"")
    with Archive(path.open("rb"), entries=(), content_size=path.stat().st_size) as archive:
        created = target.experiments.create(submission, archive)
    return created.experiment, created.warnings


def _config(found: _Promotion, checkpoint_id: str) -> dict[str, Any]:
    config = dict(found.experiment.config or {})
    searcher = config.get("searcher") or {}
    kept = ("metric", "smaller_is_better", "max_length", "max_time", "time_metric")
    for name in _OF_A_CLUSTER:
        config.pop(name, None)
    resources = config.get("resources")
    if isinstance(resources, Mapping):
        config["resources"] = {name: value for name, value in resources.items() if name != "resource_pool"}
    config["hyperparameters"] = found.trial.hparams
    config["searcher"] = {
        "name": "single",
        **{name: searcher[name] for name in kept if searcher.get(name) is not None},
        "source_checkpoint_uuid": checkpoint_id,
    }
    return _without_nulls(json.loads(json.dumps(config)))


def _without_nulls(config: dict[str, Any]) -> dict[str, Any]:
    """Leaves out what has no value: defaults are those of the other cluster."""
    return {
        name: _without_nulls(value) if isinstance(value, dict) and name != "hyperparameters" else value
        for name, value in config.items()
        if value is not None
    }
