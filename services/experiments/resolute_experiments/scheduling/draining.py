"""Drains the cluster before a planned stop of this service."""

from __future__ import annotations

import structlog
from sqlalchemy.engine import Connection

from resolute_experiments.allocations.fleet import Fleet
from resolute_experiments.context import ServiceContext
from resolute_experiments.states import TrialEvent
from resolute_experiments.store import runs, trials
from resolute_experiments.topics import SIGNAL_CHANGES
from resolute_experiments.transitions import transition_trial
from resolute_experiments.transitions.signals import SignalReason

_POLL_SECONDS = 0.1
_log = structlog.get_logger("draining")


async def drain(core: ServiceContext, fleet: Fleet, *, timeout: float) -> None:
    """Asks every running trial to checkpoint and exit, and ends those that have not after a while.

    Args:
        core: The service's database and notifier.
        fleet: The machines.
        timeout: Seconds that trials get. Those that are ended by force continue from their last checkpoint.
    """
    timing = core.timing()

    def preempt_all(connection: Connection) -> None:
        for run in runs.unfinalized(connection):
            trial = trials.get(connection, trial_id=run.trial_id)
            transition_trial(connection, trial, TrialEvent.PREEMPT, timing, reason=SignalReason.MACHINE)

    await core.database.write(preempt_all)
    core.notifier.notify(SIGNAL_CHANGES)
    await _wait_until_empty(core, timeout)
    for run in await core.database.read(runs.unfinalized):
        _log.warning("trial did not exit in time and is ended", allocation=run.allocation_id)
        await fleet.kill(run)
    await _wait_until_empty(core, timeout)


async def _wait_until_empty(core: ServiceContext, timeout: float) -> None:
    deadline = core.clock.monotonic() + timeout
    with core.notifier.subscribe() as changes:
        while await core.database.read(runs.unfinalized) and core.clock.monotonic() < deadline:
            await changes.wait(_POLL_SECONDS)
