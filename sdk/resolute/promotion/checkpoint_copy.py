"""Copies a checkpoint to another cluster, and compares every byte there with the digests of the original."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from resolute.client.downloads.checkpoint_files import download
from resolute.client.downloads.verification import verify
from resolute.client.remote.trials import StartedRun
from resolute.client.schema.records import CheckpointRecord
from resolute.client.schema.states import CheckpointState
from resolute.client.services import Services
from resolute.contracts.files.atomic_files import write_atomically
from resolute.core.remote.presigned_urls import open_remote_store
from resolute.core.remote.registry import RemoteRegistry, parse_connection_storage, storage_of, to_message
from resolute.core.remote.session import Session
from resolute.errors import DataLossError, NotFoundError
from resolute.runtime.connection import Connection

PROMOTED_TO = "promoted_to"
"""In the metadata of a checkpoint: its copies, by the UUID of their cluster."""
_OUTAGE_TIMEOUT = 60.0
"""Seconds that the other cluster is waited for: the command can be called again."""


def copy_checkpoint(
    original: CheckpointRecord,
    *,
    source: Services,
    target: Services,
    begun: StartedRun,
    checkpoint_id: str,
    lineage: Mapping[str, Any],
    directory: Path,
) -> None:
    """Copies a checkpoint, unless it is there; what an interrupted copy has brought here is used again.

    Args:
        original: The checkpoint.
        source: The cluster that has it.
        target: The cluster that gets it.
        begun: The run there that it becomes one of.
        checkpoint_id: UUID of the copy.
        lineage: Where it comes from, for its metadata.
        directory: Takes the files on their way.

    Raises:
        DataLossError: The copy is not what the original is.
        FailedPreconditionError: The store of the target cannot be reached from here.
        QuotaError: A disk is full.
    """
    if not _is_there(target, checkpoint_id):
        files = download(original, directory / "checkpoint", registry=source.checkpoints)
        _upload(
            original,
            files,
            target=target,
            begun=begun,
            checkpoint_id=checkpoint_id,
            lineage=lineage,
            directory=directory,
        )
    _compare(original, target, checkpoint_id)


def _is_there(target: Services, checkpoint_id: str) -> bool:
    try:
        return target.checkpoints.get(checkpoint_id).state is CheckpointState.COMPLETED
    except NotFoundError:
        return False


def _upload(
    original: CheckpointRecord,
    files: Path,
    *,
    target: Services,
    begun: StartedRun,
    checkpoint_id: str,
    lineage: Mapping[str, Any],
    directory: Path,
) -> None:
    endpoint = target.session.endpoint
    token = directory / "token"
    write_atomically(token, begun.token, mode=0o600)
    connection = Connection(
        address=endpoint.address,
        experiment_id=begun.trial.experiment_uuid,
        trial_id=begun.trial.uuid,
        run=begun.run,
        token_path=str(token),
        storage=begun.storage,
        unmanaged=True,
    )
    session = Session(connection, tls=endpoint.tls, outage_timeout=_OUTAGE_TIMEOUT)
    try:
        storage = storage_of(parse_connection_storage(connection.storage))
        registry = RemoteRegistry(session, storage=to_message(storage))
        own = {name: value for name, value in original.metadata.items() if name != PROMOTED_TO}
        metadata = registry.prepare({**own, "promoted_from": dict(lineage)})
        registry.begin(checkpoint_id)
        written = open_remote_store(storage, session).write(
            checkpoint_id, files, [file.path for file in original.files]
        )
        registry.commit(checkpoint_id, files=written, metadata=metadata)
    finally:
        session.close()
        token.unlink()


def _compare(original: CheckpointRecord, target: Services, checkpoint_id: str) -> None:
    """Reads the copy at its cluster and compares it with the digests of the original."""
    copy = target.checkpoints.get(checkpoint_id)
    expected = replace(copy, files=original.files)
    faults = [
        f"{file.path} {file.fault}" for file in verify(expected, registry=target.checkpoints) if file.fault
    ]
    if faults:
        raise DataLossError(
            f"the copy {checkpoint_id} of checkpoint {original.uuid} is not the same: {'; '.join(faults)}; "
            "remove it there with `resolute checkpoint delete`, and promote again"
        )
