"""Sends runs that were recorded off cluster."""

from __future__ import annotations

from dataclasses import dataclass

from resolute.client.schema.records import TrialRecord
from resolute.client.services import Services
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.lock import RunLock
from resolute.errors import ConflictError, DeadlineError
from resolute.rpc.channel import open_channel
from resolute.runtime.offline_run import OfflineRun
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.shipping import SpoolShipper
from resolute.spool.report_writer import refusals_of


@dataclass(frozen=True)
class SyncResult:
    """A run whose reports have all arrived."""

    trial: TrialRecord
    """What the cluster keeps it as."""
    refusals: tuple[str, ...]
    """Why single reports were not kept."""


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
        raise ConflictError(f"{run.directory} is being sent by another process already") from None
    try:
        return _sync(services, run, deadline=clock.monotonic() + timeout, clock=clock)
    finally:
        lock.release()


def _sync(services: Services, run: OfflineRun, *, deadline: float, clock: Clock) -> SyncResult:
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
    ended = ExitRecord.read(run.exit_file) or ExitRecord(exit_code=0, end_time=run.ended_at())
    services.trials.end(trial.uuid, begun.run, ended)
    return SyncResult(services.trials.get(trial.uuid), tuple(refusals_of(run.spool)))
