"""Sends runs that were recorded off cluster: their reports, lines and checkpoints, and how they ended."""

from __future__ import annotations

import contextlib
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from resolute.client.remote.trials import StartedRun
from resolute.client.schema.records import TrialRecord
from resolute.client.services import Services
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.lock import RunLock
from resolute.core.checkpoint.files.record import Record
from resolute.core.remote.presigned_urls import open_remote_store
from resolute.core.remote.registry import RemoteRegistry, parse_connection_storage, storage_of
from resolute.core.remote.session import Session
from resolute.core.unmanaged.recorded_checkpoints import RecordedCheckpoints
from resolute.core.unmanaged.recording import is_recorded, recorded_runs
from resolute.core.unmanaged.sidecar import ENDED_SILENTLY
from resolute.errors import ConflictError, DeadlineError, ResoluteError
from resolute.rpc.channel import open_channel
from resolute.runtime.connection import Connection
from resolute.runtime.offline_run import OfflineRun
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.shipping import SpoolShipper
from resolute.spool.report_writer import refusals_of
from resolute.trial_errors import CheckpointNotFound

_log = logging.getLogger("resolute.core")


@dataclass(frozen=True)
class SyncResult:
    """A run whose reports have all arrived."""

    trial: TrialRecord
    """What the cluster keeps it as."""
    refusals: tuple[str, ...]
    """Why single reports were not kept."""


def sync_recorded(services: Services, parent: Path, *, timeout: float) -> None:
    """Sends the runs that scripts recorded while this cluster was out of reach, and removes what has arrived.

    What cannot be sent stays, and a warning says so.

    Args:
        services: The cluster.
        parent: Where runs lie.
        timeout: Seconds to wait at most for the reports of each.
    """
    for run in recorded_runs(parent, address=services.session.endpoint.address):
        try:
            sent = sync(services, run, timeout=timeout)
        except ConflictError:
            # It goes on, or another script that starts sends it.
            continue
        except (ResoluteError, OSError) as failure:
            _log.warning("the run that is recorded in %s could not be sent: %s", run.directory, failure)
            continue
        _log.info("the run that was recorded in %s is trial %d now", run.directory, sent.trial.id)
        if not sent.refusals:
            shutil.rmtree(run.directory, ignore_errors=True)


def sync(services: Services, run: OfflineRun, *, timeout: float, clock: Clock = SYSTEM_CLOCK) -> SyncResult:
    """Sends what of a run has not arrived yet. Repeating it sends what came since, and nothing twice.

    Args:
        services: The cluster. A run goes to one cluster only: what has arrived is remembered beside it.
        run: The run.
        timeout: Seconds to wait at most.
        clock: Measures them.

    Raises:
        ConflictError: Someone else sends it, such as the sidecar of a run that continues.
        DeadlineError: Not everything has arrived in time. What has arrived is not sent again.
    """
    try:
        lock = RunLock.acquire(run.lock_file)
    except ConflictError:
        raise ConflictError(
            f"{run.directory} is still being recorded, or is being sent by another process; "
            "send it again when that has ended"
        ) from None
    try:
        # Until the lock was had its metadata may have changed, or another process may have removed it.
        run = OfflineRun.load(run.directory)
        return _sync(services, run, timeout=timeout, clock=clock)
    finally:
        lock.release()


def _sync(services: Services, run: OfflineRun, *, timeout: float, clock: Clock) -> SyncResult:
    deadline = clock.monotonic() + timeout
    ended = _end_of(run)
    begun = services.trials.begin(run)
    trial, endpoint = begun.trial, services.session.endpoint
    identity = RunIdentity(
        trial.uuid,
        begun.run,
        trial.experiment_uuid,
        searcher_metric=begun.searcher_metric,
        smaller_is_better=begun.smaller_is_better,
    )
    with open_channel(endpoint.address, token=lambda: begun.token, tls=endpoint.tls) as channel:
        shipping = SpoolShipper(channel, run.spool, identity, clock=clock)
        shipping.start()
        try:
            arrived = shipping.drain(give_up=lambda: clock.monotonic() >= deadline)
        finally:
            shipping.stop()
    if not arrived:
        raise DeadlineError(
            f"not all reports of {run.directory} have arrived in time; call again to send the rest"
        )
    _send_checkpoints(services, run, begun, timeout=timeout)
    services.trials.end(trial.uuid, begun.run, ended)
    return SyncResult(services.trials.get(trial.uuid), tuple(refusals_of(run.spool)))


def _end_of(run: OfflineRun) -> ExitRecord:
    ended = ExitRecord.read(run.exit_file)
    if ended is None and is_recorded(run.directory):
        # Its lock is ours, so its script was killed. Written down: sending changes the files that tell when.
        ended = ExitRecord(exit_code=1, failure=ENDED_SILENTLY, end_time=run.ended_at())
        ended.write(run.exit_file)
    return ended or ExitRecord(exit_code=0, end_time=run.ended_at())


def _send_checkpoints(services: Services, run: OfflineRun, begun: StartedRun, *, timeout: float) -> None:
    endpoint = services.session.endpoint
    connection = Connection(
        address=endpoint.address,
        experiment_id=begun.trial.experiment_uuid,
        trial_id=begun.trial.uuid,
        run=begun.run,
        token_path=str(RunDirectory(run.directory).token_file),
        storage=begun.storage,
        unmanaged=True,
    )
    session = Session(connection, tls=endpoint.tls, fallback_token=begun.token, outage_timeout=timeout)
    storage = parse_connection_storage(begun.storage)
    registry = RemoteRegistry(session, storage=storage)

    def upload(checkpoint_id: str, source: Path, record: Record) -> None:
        with contextlib.suppress(CheckpointNotFound):
            # Committed by a call that was cut short before it could remember that.
            registry.find(checkpoint_id)
            return
        registry.begin(checkpoint_id)
        store = open_remote_store(storage_of(storage), session)
        files = store.write(checkpoint_id, source, [file.path for file in record.files])
        registry.commit(checkpoint_id, files=files, metadata=record.metadata)

    try:
        RecordedCheckpoints(run.directory).send(upload)
    finally:
        session.close()
