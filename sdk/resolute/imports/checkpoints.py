"""Imports checkpoints under their UUIDs, with their files in place or copied."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from resolute.api.checkpoints.v1 import checkpoint_pb2, checkpoints_service_pb2, storage_pb2
from resolute.client.remote.imports import batches
from resolute.client.services import Services
from resolute.contracts.times import seconds_at, to_timestamp
from resolute.contracts.values import to_value
from resolute.core.checkpoint.files.manifest import FileEntry
from resolute.core.remote.registry import storage_of
from resolute.errors import (
    AlreadyExistsError,
    AuthError,
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
)
from resolute.imports.copies import Copies, old_storage
from resolute.imports.experiments import ExperimentHere
from resolute.imports.history import TrialHere
from resolute.imports.master import Master, Message
from resolute.imports.report import Report

_STATES: Mapping[str, checkpoint_pb2.CheckpointState.ValueType] = {
    "STATE_COMPLETED": checkpoint_pb2.CHECKPOINT_STATE_COMPLETED,
    "STATE_PARTIALLY_DELETED": checkpoint_pb2.CHECKPOINT_STATE_PARTIALLY_DELETED,
    "STATE_DELETED": checkpoint_pb2.CHECKPOINT_STATE_DELETED,
}
_STEPS_KEYS = ("steps_completed", "latest_batch")
_MOST_AT_ONCE = 250
_UNKNOWN_STORAGE = (
    "checkpoints in a storage that cannot be read here, as HDFS, or whose address the other cluster masks"
)


class Checkpoints:
    """Imports the checkpoints of one experiment.

    Args:
        master: The other cluster.
        services: This cluster.
        report: Counts the imported objects.
        here: The imported experiment.
        trials: Its trials, by their numbers on the other cluster.
    """

    def __init__(
        self,
        master: Master,
        services: Services,
        report: Report,
        *,
        here: ExperimentHere,
        trials: Mapping[int, TrialHere],
    ) -> None:
        self._master = master
        self._services = services
        self._report = report
        self._here = here
        self._trials = trials
        self._refused = 0

    def bring(self) -> None:
        """Registers all of them, those that are to be copied once they are.

        Raises:
            FailedPreconditionError: Some were refused; the others are registered.
        """
        path = f"/api/v1/experiments/{self._here.number}/checkpoints"
        order = {"sortBy": "SORT_BY_UUID", "sortByAttr": "SORT_BY_UUID", "orderBy": "ORDER_BY_ASC"}
        found = self._master.pages(path, "checkpoints", **order)
        storage = self._here.storage
        if storage is None:
            self._report.remark(_UNKNOWN_STORAGE, sum(1 for _ in found))
            return
        read = self._read_all(found, storage)
        if self._here.old_storage is not None:
            read = self._copied(read, self._here.old_storage, storage)
        for batch in batches(read, most=_MOST_AT_ONCE, size=checkpoint_pb2.Checkpoint.ByteSize):
            try:
                self._send(batch)
            except (AlreadyExistsError, DataLossError, InvalidArgumentError):
                for checkpoint in batch:
                    with self._noting(checkpoint.checkpoint_id):
                        self._send([checkpoint])
        if self._refused:
            raise FailedPreconditionError(
                f"{self._refused} of its checkpoints did not come: the next import tries them again"
            )

    def _send(self, batch: Sequence[checkpoint_pb2.Checkpoint]) -> None:
        number, name = self._here.workspace
        request = checkpoints_service_pb2.ImportCheckpointsRequest(
            checkpoints=batch,
            workspace_id=number,
            workspace_name=name,
            copied=self._here.old_storage is not None,
        )
        new = self._services.imports.checkpoints(request)
        self._report.add("checkpoints", new=new, known=len(batch) - new)

    def _read_all(
        self, found: Iterable[Message], storage: storage_pb2.Storage
    ) -> Iterator[checkpoint_pb2.Checkpoint]:
        for old in found:
            with self._noting(old.get("uuid")):
                trial = self._trials.get(int((old.get("training") or {}).get("trialId") or 0))
                state = _STATES.get(str(old.get("state")))
                if trial is None or state is None:
                    self._report.remark("checkpoints that were never complete, or that no trial wrote")
                else:
                    yield _checkpoint(old, trial, state=state, storage=storage)

    def _copied(
        self,
        read: Iterable[checkpoint_pb2.Checkpoint],
        section: Mapping[str, Any],
        storage: storage_pb2.Storage,
    ) -> Iterator[checkpoint_pb2.Checkpoint]:
        """Copies the files of those that are not here."""
        known = {
            checkpoint.uuid
            for checkpoint in self._services.checkpoints.of_experiment(self._here.experiment_id)
        }
        copies = Copies(old_storage(section), storage_of(storage))
        for checkpoint in read:
            with self._noting(checkpoint.checkpoint_id):
                if checkpoint.checkpoint_id not in known and checkpoint.files:
                    files = [FileEntry(file.path, file.size, "") for file in checkpoint.files]
                    copied = {
                        file.path: file.digest for file in copies.bring(checkpoint.checkpoint_id, files)
                    }
                    for file in checkpoint.files:
                        file.digest = copied[file.path]
                    self._report.add("checkpoints copied", new=1)
                yield checkpoint

    @contextmanager
    def _noting(self, uuid: object) -> Iterator[None]:
        """Notes why a checkpoint could not be brought, and goes on."""
        with self._report.noting(f"checkpoint {uuid}"):
            try:
                yield
            except (UnavailableError, AuthError):
                raise
            except Exception:
                self._refused += 1
                raise


def _checkpoint(
    old: Message,
    trial: TrialHere,
    *,
    state: checkpoint_pb2.CheckpointState.ValueType,
    storage: storage_pb2.Storage,
) -> checkpoint_pb2.Checkpoint:
    time = to_timestamp(seconds_at(old.get("reportTime")))
    deleted = state == checkpoint_pb2.CHECKPOINT_STATE_DELETED
    resources = {} if deleted else dict(old.get("resources") or {})
    return checkpoint_pb2.Checkpoint(
        checkpoint_id=str(uuid.UUID(str(old["uuid"]))),
        state=state,
        trial_id=trial.trial_id,
        experiment_id=trial.experiment_id,
        run=1,
        files=[
            checkpoint_pb2.File(path=path, size=0 if path.endswith("/") else int(size))
            for path, size in sorted(resources.items())
        ],
        metadata=to_value(_with_steps(old)),
        create_time=time,
        commit_time=time,
        storage=storage,
    )


def _with_steps(old: Message) -> dict[str, Any]:
    """The metadata, which tell the steps here always."""
    metadata = dict(old.get("metadata") or {})
    for key in _STEPS_KEYS:
        if isinstance(metadata.get(key), float) and metadata[key].is_integer():
            metadata[key] = int(metadata[key])
    if not any(isinstance(metadata.get(key), int) for key in _STEPS_KEYS):
        metadata[_STEPS_KEYS[0]] = 0
    return metadata
