"""Sends runs that were recorded off cluster: their reports, lines, checkpoints and ends."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterable, Iterator
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
from resolute.core.unmanaged.recording import is_recorded, recorded_runs, unmark
from resolute.core.unmanaged.renewal import renewing
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
    """The result of sending one run."""

    trial: TrialRecord
    """What the cluster keeps it as."""
    refusals: tuple[str, ...]
    """Why single reports were not kept."""


def sync_recorded(services: Services, parent: Path, *, timeout: float) -> dict[tuple[str, str], Path]:
    """Sends the runs that scripts recorded while this cluster was out of reach, and removes what has arrived.

    What cannot be sent stays, and a warning says so. A run of which the cluster refused reports is left for
    `resolute sync`.

    Args:
        services: The cluster.
        parent: Where runs lie.
        timeout: Seconds to wait at most for all of them; a checkpoint that is begun in time is sent whole.

    Returns:
        By trial, as ``OfflineRun.trial`` names it, the directory of a run that is left.
    """
    left: dict[tuple[str, str], Path] = {}
    runs = recorded_runs(parent, address=services.session.endpoint.address)
    for run, sent in sync_all(services, runs, timeout=timeout, total=timeout, remove=True):
        if isinstance(sent, SyncResult):
            _log.info("the run that was recorded in %s is trial %d now", run.directory, sent.trial.id)
            if sent.refusals:
                _log.warning(
                    "the cluster refused reports of the run that is recorded in %s: %s; "
                    "`resolute sync %s` sends it again",
                    run.directory,
                    "; ".join(sent.refusals),
                    run.directory,
                )
        elif run.exists():
            if not isinstance(sent, ConflictError):
                _log.warning(
                    "the run that is recorded in %s could not be sent, and later runs of its trial wait for "
                    "it (move the directory away to give it up): %s",
                    run.directory,
                    sent,
                )
            if run.trial is not None:
                left.setdefault(run.trial, run.directory)
    return left


def sync_all(
    services: Services,
    runs: Iterable[OfflineRun],
    *,
    timeout: float,
    total: float = math.inf,
    remove: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> Iterator[tuple[OfflineRun, SyncResult | ResoluteError | OSError]]:
    """Sends runs; one that cannot be sent does not keep the others from it, except those of its trial.

    The runs of a trial are numbered as they arrive, and a new one ends the one before: an earlier run that
    arrives after a later one would end it, and hide what it reported.

    Args:
        services: The cluster.
        runs: The runs, oldest first.
        timeout: Seconds to wait at most for each.
        total: Seconds to wait at most for all.
        remove: As for ``sync``.
        clock: Measures the seconds.

    Yields:
        Each run, and what came of it.
    """
    left: dict[tuple[str, str], Path] = {}
    deadline = clock.monotonic() + total
    for run in runs:
        sent: SyncResult | ResoluteError | OSError
        try:
            if run.trial is not None and run.trial in left:
                raise ConflictError(
                    f"{run.directory} waits for the earlier run of its trial in {left[run.trial]}; "
                    "send that first, or move it away to give it up"
                )
            remaining = deadline - clock.monotonic()
            if remaining <= 0:
                raise DeadlineError(f"no time was left for {run.directory}; it is sent later")
            sent = sync(services, run, timeout=min(timeout, remaining), remove=remove, clock=clock)
        except (ResoluteError, OSError) as failure:
            sent = failure
            # Another process that sent it has removed it.
            if run.trial is not None and run.exists():
                left.setdefault(run.trial, run.directory)
        yield run, sent


def sync(
    services: Services,
    run: OfflineRun,
    *,
    timeout: float,
    remove: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> SyncResult:
    """Sends what of a run has not arrived yet. Repeating it sends what came since, and nothing twice.

    Args:
        services: The cluster. A run goes to one cluster only: what has arrived is remembered beside it.
        run: The run.
        timeout: Seconds to wait at most.
        remove: Whether to remove the run once all of it has arrived; if the cluster refused reports, it stays
            and counts as sent.
        clock: Measures the seconds.

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
        sent = _sync(services, run, timeout=timeout, clock=clock)
        if remove and sent.refusals:
            unmark(run.directory)
        elif remove:
            run.remove()
        return sent
    finally:
        lock.release()


def _sync(services: Services, run: OfflineRun, *, timeout: float, clock: Clock) -> SyncResult:
    deadline = clock.monotonic() + timeout
    ended = _end_of(run)
    begun = services.trials.begin(run)
    trial = begun.trial
    with renewing(services.session.endpoint, begun, RunDirectory(run.directory).token_file):
        _send_reports(services, run, begun, deadline=deadline, clock=clock)
        _send_checkpoints(services, run, begun, deadline=deadline, clock=clock)
    services.trials.end(trial.uuid, begun.run, ended)
    return SyncResult(services.trials.get(trial.uuid), tuple(refusals_of(run.spool)))


def _send_reports(
    services: Services, run: OfflineRun, begun: StartedRun, *, deadline: float, clock: Clock
) -> None:
    trial, endpoint = begun.trial, services.session.endpoint
    token = RunDirectory(run.directory).read_token
    identity = RunIdentity(
        trial.uuid,
        begun.run,
        trial.experiment_uuid,
        searcher_metric=begun.searcher_metric,
        smaller_is_better=begun.smaller_is_better,
        storage=begun.storage,
    )
    with open_channel(endpoint.address, token=token, tls=endpoint.tls) as channel:
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


def _end_of(run: OfflineRun) -> ExitRecord:
    ended = ExitRecord.read(run.exit_file)
    if ended is None and is_recorded(run.directory):
        # Its lock is ours, so its script was killed. Written down: sending changes the files that tell when.
        ended = ExitRecord(exit_code=1, failure=ENDED_SILENTLY, end_time=run.ended_at())
        ended.write(run.exit_file)
    return ended or ExitRecord(exit_code=0, end_time=run.ended_at())


def _send_checkpoints(
    services: Services, run: OfflineRun, begun: StartedRun, *, deadline: float, clock: Clock
) -> None:
    endpoint = services.session.endpoint
    connection = Connection(
        address=endpoint.address,
        experiment_id=begun.trial.experiment_uuid,
        trial_id=begun.trial.uuid,
        run=begun.run,
        token_path=str(RunDirectory(run.directory).token_file),
        tls=endpoint.tls is not None,
        storage=begun.storage,
        unmanaged=True,
    )
    session = Session(connection, tls=endpoint.tls, outage_timeout=max(deadline - clock.monotonic(), 1.0))
    storage = parse_connection_storage(begun.storage)
    registry = RemoteRegistry(session, storage=storage)

    def upload(checkpoint_id: str, source: Path, record: Record) -> None:
        # One that was begun in time is sent whole, or a large one would never arrive.
        if clock.monotonic() >= deadline:
            raise DeadlineError(
                f"not all checkpoints of {run.directory} have arrived in time; call again to send the rest"
            )
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
