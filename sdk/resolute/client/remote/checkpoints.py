"""The registry of checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolute.api.checkpoints.v1 import (
    checkpoints_service_pb2,
    checkpoints_service_pb2_grpc,
    storage_pb2,
)
from resolute.client.connection.paging import all_items
from resolute.client.connection.session import Session
from resolute.client.schema import convert
from resolute.client.schema.records import BucketStorage, CheckpointRecord, DirectoryStorage
from resolute.contracts.values import to_value
from resolute.rpc import checkpoint_files, storage_providers

_pb = checkpoints_service_pb2
_EXAMINATION_DEADLINE = 300.0
_DELETION_DEADLINE = 600.0
"""Seconds for a deletion: the answer follows when all files are gone, and a checkpoint may have many."""


@dataclass(frozen=True)
class Presigned:
    """The presigned URL of one file of a checkpoint."""

    path: str
    url: str


@dataclass(frozen=True)
class Finding:
    """The result of one step of the check of a storage."""

    step: str
    passed: bool
    detail: str


class Checkpoints:
    """Calls of the checkpoints service.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(checkpoints_service_pb2_grpc.CheckpointsServiceStub)

    def get(self, key: str) -> CheckpointRecord:
        """Returns a committed checkpoint.

        Raises:
            NotFoundError: There is none.
        """
        request = _pb.GetCheckpointRequest(checkpoint_id=convert.checkpoint_id(key))
        message = self._stub.GetCheckpoint(request).checkpoint
        return convert.checkpoint(message, files=checkpoint_files.files_of(self._stub, message))

    def pin(self, keys: Sequence[str], *, pinned: bool) -> None:
        """Pins checkpoints, so that nothing deletes them, or unpins them."""
        ids = [convert.checkpoint_id(key) for key in keys]
        self._stub.PinCheckpoints(_pb.PinCheckpointsRequest(checkpoint_ids=ids, pinned=pinned))

    def of_trial(self, trial_uuid: str) -> Iterator[CheckpointRecord]:
        """Yields the committed checkpoints of a trial, newest first."""
        return self._list(_pb.ListCheckpointsRequest(trial_ids=[trial_uuid]))

    def of_experiment(self, experiment_uuid: str) -> Iterator[CheckpointRecord]:
        """Yields the committed checkpoints of an experiment, newest first."""
        return self._list(_pb.ListCheckpointsRequest(experiment_ids=[experiment_uuid]))

    def hold(self, key: str, *, seconds: float) -> None:
        """Keeps a committed checkpoint for some seconds from policies that delete.

        Raises:
            NotFoundError: There is none, or its files are gone.
        """
        self._stub.HoldCheckpoint(_pb.HoldCheckpointRequest(checkpoint_id=key, hold_seconds=seconds))

    def presigned(self, key: str, paths: Sequence[str]) -> list[Presigned]:
        """Returns URLs of at most 1000 files; none when the store has no URLs."""
        response = self._stub.PresignDownloads(_pb.PresignDownloadsRequest(checkpoint_id=key, paths=paths))
        return [Presigned(download.file.path, download.url) for download in response.downloads]

    def read(self, key: str, path: str, *, offset: int = 0) -> Iterator[bytes]:
        """Yields the bytes of one file through the service, from ``offset`` on."""
        request = _pb.ReadFileRequest(checkpoint_id=key, path=path, offset=offset)
        for response in self._stub.ReadFile(request):
            yield response.data

    def update_metadata(self, key: str, patch: Mapping[str, Any]) -> CheckpointRecord:
        """Replaces the keys of ``patch``; a None removes its key."""
        request = _pb.UpdateMetadataRequest(checkpoint_id=key, patch=to_value(patch))
        return convert.checkpoint(self._stub.UpdateMetadata(request).checkpoint)

    def delete(self, keys: Sequence[str], *, globs: Sequence[str] = ()) -> None:
        """Removes checkpoints, or only their files that match one of ``globs``."""
        if globs:
            files = _pb.DeleteFilesRequest(checkpoint_ids=keys, globs=globs)
            self._stub.DeleteFiles(files, timeout=_DELETION_DEADLINE)
        else:
            checkpoints = _pb.DeleteCheckpointsRequest(checkpoint_ids=keys)
            self._stub.DeleteCheckpoints(checkpoints, timeout=_DELETION_DEADLINE)

    def examine(self, storage: DirectoryStorage | BucketStorage) -> list[Finding]:
        """Has the service check a storage."""
        if isinstance(storage, DirectoryStorage):
            message = storage_pb2.Storage(directory=storage_pb2.Storage.Directory(path=storage.path))
        else:
            message = storage_pb2.Storage(
                bucket=storage_pb2.Storage.Bucket(
                    bucket=storage.bucket,
                    prefix=storage.prefix,
                    endpoint_url=storage.endpoint_url,
                    provider=storage_providers.of_kind(storage.type),
                )
            )
        response = self._stub.CheckStorage(
            _pb.CheckStorageRequest(storage=message), timeout=_EXAMINATION_DEADLINE
        )
        return [Finding(step.name, step.passed, step.detail) for step in response.steps]

    def _list(self, request: checkpoints_service_pb2.ListCheckpointsRequest) -> Iterator[CheckpointRecord]:
        for message in all_items(self._stub.ListCheckpoints, request, "checkpoints"):
            yield convert.checkpoint(message)
