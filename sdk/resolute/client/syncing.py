"""Sends runs that were recorded off cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from resolute.client.records import TrialRecord
from resolute.client.services import Services
from resolute.errors import DeadlineError
from resolute.offline_run import OfflineRun
from resolute.rpc.channel import open_channel
from resolute.spool.batches import RunIdentity
from resolute.spool.delivery import ReportDelivery
from resolute.spool.reports import REFUSALS_SUFFIX
from resolute.spool.sender import SpoolSender
from resolute.spool.thread import SenderThread

_RUN = 1


@dataclass(frozen=True)
class Synced:
    """A run whose reports have all arrived."""

    trial: TrialRecord
    """What the cluster keeps it as."""
    refusals: tuple[str, ...]
    """Why single reports were not kept."""


def sync(services: Services, run: OfflineRun, *, timeout: float) -> Synced:
    """Sends what of a run has not arrived yet. Repeating it sends what came since, and nothing twice.

    Args:
        services: The cluster. A run goes to one cluster only: what has arrived is remembered beside it.
        run: The run.
        timeout: Seconds to wait at most.

    Raises:
        DeadlineError: Not everything has arrived in time. What has arrived is not sent again.
    """
    recorded = services.trials.record(run)
    trial, endpoint = recorded.trial, services.session.endpoint
    identity = RunIdentity(trial.uuid, _RUN, trial.experiment_uuid)
    with open_channel(
        endpoint.address, token=lambda: recorded.token, root_certificate=endpoint.root_certificate
    ) as channel:
        sender = SpoolSender(run.spool, ReportDelivery.over(channel, identity))
        thread = SenderThread(sender, name="sync")
        thread.start()
        try:
            arrived = thread.drain(timeout)
        finally:
            thread.stop()
    if not arrived:
        raise DeadlineError(
            f"not all reports of {run.directory} have arrived within {timeout:g} s; "
            "call again to send the rest"
        )
    return Synced(trial, tuple(_refusals(run.spool)))


def _refusals(spool: Path) -> Iterator[str]:
    for path in sorted(spool.glob(f"*{REFUSALS_SUFFIX}")):
        for line in path.read_text().splitlines():
            yield str(json.loads(line)["message"])
