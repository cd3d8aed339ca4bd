"""Presigned URLs from the checkpoints service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from resolute.api.checkpoints.v1 import checkpoint_pb2 as checkpoint
from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as checkpoints
from resolute.core.checkpoint.files.manifest import FileEntry
from resolute.core.checkpoint.files.progress_log import ProgressFactory, log_progress
from resolute.core.checkpoint.files.reuse import Reusable, Reuse
from resolute.core.checkpoint.storage import DirectoryStorage, Storage
from resolute.core.checkpoint.stores.base import CheckpointStore
from resolute.core.checkpoint.stores.cached import CachedStore
from resolute.core.checkpoint.stores.directory import DirectoryStore
from resolute.core.checkpoint.stores.presigned import PresignedStore, UploadTarget
from resolute.core.remote.session import Session
from resolute.rpc import checkpoint_files
from resolute.transfer.cache import FileCache


class RemoteUrlSigner:
    """Requests URLs from the service, and waits during its outages.

    Args:
        session: The services.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def uploads(self, checkpoint_id: str, sizes: Mapping[str, int]) -> Mapping[str, UploadTarget]:
        """Returns targets by path.

        Raises:
            FailedPreconditionError: The store cannot be used; the message says why.
            RunSupersededError: A later run has taken over.
        """
        request = checkpoints.PresignUploadsRequest(
            checkpoint_id=checkpoint_id,
            files=[checkpoint.File(path=path, size=size) for path, size in sizes.items()],
        )
        response = self._session.retry_during_outage(
            lambda: self._session.checkpoints.PresignUploads(request), purpose="uploading a checkpoint"
        )
        return {
            upload.path: UploadTarget(
                upload.path, tuple(upload.urls), upload.part_size, upload.upload_id, dict(upload.headers)
            )
            for upload in response.uploads
        }

    def downloads(self, checkpoint_id: str, paths: Sequence[str]) -> Mapping[str, str]:
        """Returns URLs by path."""
        request = checkpoints.PresignDownloadsRequest(checkpoint_id=checkpoint_id, paths=paths)
        response = self._session.retry_during_outage(
            lambda: self._session.checkpoints.PresignDownloads(request), purpose="downloading a checkpoint"
        )
        return {download.file.path: download.url for download in response.downloads}

    def sizes(self, checkpoint_id: str) -> dict[str, int]:
        """Returns sizes in bytes by path."""
        request = checkpoints.GetCheckpointRequest(checkpoint_id=checkpoint_id)
        response = self._session.retry_during_outage(
            lambda: self._session.checkpoints.GetCheckpoint(request), purpose="asking for a checkpoint"
        ).checkpoint
        files = self._session.retry_during_outage(
            lambda: checkpoint_files.files_of(self._session.checkpoints, response),
            purpose="asking for a checkpoint",
        )
        return {file.path: file.size for file in files}

    def delete(self, checkpoint_id: str) -> None:
        """Removes a checkpoint."""
        request = checkpoints.DeleteCheckpointsRequest(checkpoint_ids=[checkpoint_id])
        self._session.retry_during_outage(
            lambda: self._session.checkpoints.DeleteCheckpoints(request), purpose="deleting a checkpoint"
        )


def reusable_files(session: Session, checkpoint_id: str, files: Sequence[FileEntry]) -> Reusable:
    """Asks the service which files the experiment's earlier checkpoints hold.

    Args:
        session: The services.
        checkpoint_id: The checkpoint that is being written.
        files: Its files.

    Raises:
        RunSupersededError: A later run has taken over.
    """
    request = checkpoints.ReuseFilesRequest(
        checkpoint_id=checkpoint_id,
        files=[checkpoint.File(path=file.path, size=file.size, digest=file.digest) for file in files],
    )
    response = session.retry_during_outage(
        lambda: session.checkpoints.ReuseFiles(request), purpose="uploading a checkpoint"
    )
    homes = {file.path: f"{file.location.checkpoint_id}/{file.location.path}" for file in response.reused}
    return Reusable(candidates=frozenset(response.candidate_paths), held=homes)


def open_remote_store(
    storage: Storage, session: Session, *, watch: ProgressFactory = log_progress
) -> CheckpointStore:
    """Returns the store of a storage, as a trial on a cluster reaches it.

    Args:
        storage: Where checkpoints lie.
        session: The services.
        watch: Makes what counts the bytes of each upload and download.

    Raises:
        InvalidArgumentError: The variables of the machine's cache are wrong.
    """
    reuse = Reuse(partial(reusable_files, session))
    if isinstance(storage, DirectoryStorage):
        return DirectoryStore(storage.path, reuse=reuse, full_timeout=session.outage_timeout, watch=watch)
    store = PresignedStore(
        RemoteUrlSigner(session), outage_timeout=session.outage_timeout, reuse=reuse, watch=watch
    )
    cache = FileCache.from_environment()
    return store if cache is None else CachedStore(store, cache)
