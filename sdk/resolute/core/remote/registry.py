"""The registry of checkpoints of a cluster."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from resolute.api.checkpoints.v1 import checkpoint_pb2 as checkpoint
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as checkpoints
from resolute.api.checkpoints.v1 import storage_pb2
from resolute.contracts.object_stores.location import BucketStorage
from resolute.contracts.values import to_mapping, to_value
from resolute.core.checkpoint.files.manifest import FileEntry, metadata_text
from resolute.core.checkpoint.files.progress_log import ProgressFactory, log_progress
from resolute.core.checkpoint.registry import RegisteredCheckpoint
from resolute.core.checkpoint.storage import DirectoryStorage, Storage
from resolute.core.remote.served_files import open_checkpoint
from resolute.core.remote.session import Session
from resolute.errors import NotFoundError, ResoluteError, UnimplementedError
from resolute.rpc import checkpoint_files, storage_providers
from resolute.transfer.holds import HOLD_SECONDS
from resolute.trial_errors import CheckpointNotFound

_COMMIT_DEADLINE = 300.0
"""Seconds for the service to look at every file."""
_VERIFIED_PER_SECOND = 50e6
"""Bytes that a service reads at least, where it compares files with their digests."""
_ABORT_DEADLINE = 5.0
_HOLD_DEADLINE = 5.0
_RESTORABLE = frozenset(
    {checkpoint.CHECKPOINT_STATE_COMPLETED, checkpoint.CHECKPOINT_STATE_PARTIALLY_DELETED}
)
_STEPS, _OLD_STEPS = "steps_completed", "latest_batch"
_log = logging.getLogger("resolute.core")


class RemoteRegistry:
    """Registers checkpoints of a run at the checkpoints service.

    Args:
        session: The services.
        storage: The storage of new checkpoints.
        watch: Creates the progress of a download.
    """

    def __init__(
        self, session: Session, *, storage: storage_pb2.Storage, watch: ProgressFactory = log_progress
    ) -> None:
        self._session = session
        self._storage = storage
        self._watch = watch

    def prepare(self, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
        """Returns the metadata with the steps under both names, as ``metadata_with_steps`` does."""
        return metadata_with_steps(metadata)

    def begin(self, checkpoint_id: str) -> None:
        """Begins a checkpoint."""
        connection = self._session.connection
        request = checkpoints.BeginCheckpointRequest(
            checkpoint_id=checkpoint_id,
            trial_id=connection.trial_id,
            run=connection.run,
            experiment_id=connection.experiment_id,
            storage=self._storage,
        )
        self._session.retry_during_outage(
            lambda: self._session.checkpoints.BeginCheckpoint(request), purpose="beginning a checkpoint"
        )

    def commit(self, checkpoint_id: str, *, files: Sequence[FileEntry], metadata: Mapping[str, Any]) -> None:
        """Commits a checkpoint.

        Raises:
            RunSupersededError: A later run has taken over; this one's checkpoints no longer count.
        """
        request = checkpoints.CommitCheckpointRequest(
            checkpoint_id=checkpoint_id,
            run=self._session.connection.run,
            files=[checkpoint.File(path=file.path, size=file.size, digest=file.digest) for file in files],
            metadata=to_value(metadata),
            multipart_uploads=[
                checkpoints.CommitCheckpointRequest.MultipartUpload(
                    path=file.path, upload_id=file.upload_id, part_etags=file.etags
                )
                for file in files
                if file.upload_id
            ],
        )
        deadline = _COMMIT_DEADLINE + sum(file.size for file in files) / _VERIFIED_PER_SECOND
        self._session.retry_during_outage(
            lambda: checkpoint_files.commit(self._session.checkpoints, request, deadline=deadline),
            purpose="committing a checkpoint",
        )

    def abort(self, checkpoint_id: str) -> None:
        """Aborts a checkpoint; when the call fails, the service aborts it later by itself."""
        request = checkpoints.AbortCheckpointRequest(
            checkpoint_id=checkpoint_id, run=self._session.connection.run
        )
        try:
            self._session.checkpoints.AbortCheckpoint(request, timeout=_ABORT_DEADLINE)
        except ResoluteError as failure:
            _log.info("checkpoint %s is left unfinished: %s", checkpoint_id, failure)

    def hold(self, checkpoint_id: str) -> None:
        """Keeps a checkpoint for a while from policies that delete.

        Raises:
            ResoluteError: The service did not answer in time, or the checkpoint is gone.
        """
        request = checkpoints.HoldCheckpointRequest(checkpoint_id=checkpoint_id, hold_seconds=HOLD_SECONDS)
        self._session.checkpoints.HoldCheckpoint(request, timeout=_HOLD_DEADLINE)

    def find(self, checkpoint_id: str) -> RegisteredCheckpoint:
        """Returns a committed checkpoint.

        Raises:
            CheckpointNotFound: There is none.
        """
        message = self._get(checkpoint_id)
        listed = self._session.retry_during_outage(
            lambda: checkpoint_files.files_of(self._session.checkpoints, message),
            purpose="asking for a checkpoint",
        )
        files = tuple(FileEntry(file.path, file.size, file.digest) for file in listed)
        store = open_checkpoint(checkpoint_id, storage_of(message.storage), self._session, watch=self._watch)
        return RegisteredCheckpoint(store, files)

    def metadata(self, checkpoint_id: str) -> dict[str, Any]:
        """Returns the metadata of a committed checkpoint.

        Raises:
            CheckpointNotFound: There is none.
        """
        return to_mapping(self._get(checkpoint_id).metadata)

    def delete(self, checkpoint_id: str) -> None:
        """Removes a checkpoint, files first."""
        request = checkpoints.DeleteCheckpointsRequest(checkpoint_ids=[checkpoint_id])
        self._session.retry_during_outage(
            lambda: self._session.checkpoints.DeleteCheckpoints(request), purpose="deleting a checkpoint"
        )

    def _get(self, checkpoint_id: str) -> checkpoint.Checkpoint:
        request = checkpoints.GetCheckpointRequest(checkpoint_id=checkpoint_id)
        try:
            response = self._session.retry_during_outage(
                lambda: self._session.checkpoints.GetCheckpoint(request), purpose="asking for a checkpoint"
            ).checkpoint
        except NotFoundError as failure:
            raise CheckpointNotFound(str(failure), resource=failure.resource) from failure
        if response.state not in _RESTORABLE:
            # Its own trial may see a checkpoint before it counts, and after it is gone.
            state = checkpoint.CheckpointState.Name(response.state).removeprefix("CHECKPOINT_STATE_")
            raise CheckpointNotFound(f"checkpoint {checkpoint_id} is {state}; restore from another one")
        return response


def parse_connection_storage(content: Mapping[str, Any]) -> storage_pb2.Storage:
    """Reads the storage of a ``Connection``."""
    storage = json_format.ParseDict(dict(content), storage_pb2.Storage(), ignore_unknown_fields=True)
    if storage.HasField("bucket") and not storage.bucket.provider:
        # Files from before 0.1.0 name no provider where it is S3.
        storage.bucket.provider = storage_pb2.Storage.PROVIDER_S3
    return storage


def to_message(storage: Storage) -> storage_pb2.Storage:
    """Turns a storage that the script chose into the contract's form."""
    if isinstance(storage, DirectoryStorage):
        return storage_pb2.Storage(directory=storage_pb2.Storage.Directory(path=str(storage.path)))
    return storage_pb2.Storage(
        bucket=storage_pb2.Storage.Bucket(
            bucket=storage.bucket,
            prefix=storage.prefix,
            endpoint_url=storage.endpoint_url,
            provider=storage_providers.of_kind(storage.kind),
        )
    )


def storage_of(message: storage_pb2.Storage) -> Storage:
    """Turns the contract's form of a storage into the SDK's.

    Raises:
        UnimplementedError: It is of a kind that this release does not know.
    """
    place = message.WhichOneof("kind")
    if place == "directory":
        return DirectoryStorage(Path(message.directory.path))
    kind = storage_providers.kind_of(message.bucket.provider)
    if place == "bucket" and kind:
        bucket = message.bucket
        return BucketStorage(kind, bucket.bucket, prefix=bucket.prefix, endpoint_url=bucket.endpoint_url)
    raise UnimplementedError("the checkpoint lies in a storage that this release does not know; upgrade it")


def metadata_with_steps(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns metadata for a checkpoint of a cluster: the steps under both names, today's and the older one.

    Raises:
        ValueError: The steps are missing or no whole number.
        TypeError: Something in the metadata has no form in JSON, such as a NumPy value.
        InvalidArgumentError: It has keys that are no text, too large whole numbers, or nests too deep.
    """
    prepared = dict(metadata or {})
    steps = prepared.get(_STEPS, prepared.get(_OLD_STEPS))
    if steps is None:
        raise ValueError(f"metadata of a checkpoint must contain {_STEPS!r}: how many steps are in it")
    if isinstance(steps, bool) or not isinstance(steps, int):
        raise ValueError(  # noqa: TRY004 - the documented class
            f"{_STEPS!r} in the metadata of a checkpoint is {steps!r}; a whole number was expected, such as "
            "int(steps)"
        )
    # Before the first byte is sent, not when the commit is refused.
    metadata_text(prepared)
    to_value(prepared, path="metadata")
    prepared.setdefault(_STEPS, steps)
    prepared.setdefault(_OLD_STEPS, steps)
    return prepared
