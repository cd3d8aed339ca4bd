"""Marks unmanaged runs without heartbeats as lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import structlog

from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute_experiments.allocations.leases import Leases
from resolute_experiments.context import ServiceContext
from resolute_experiments.states import RunOutcome
from resolute_experiments.store import runs
from resolute_experiments.topics import watched
from resolute_experiments.unmanaged import tracking
from resolute_serving.database.remembered import Remembered
from resolute_serving.repetition import repeat

TTL_SECONDS = 300.0
"""How long a run may be silent: five of its heartbeats."""
_TICK_SECONDS = 5.0
_log = structlog.get_logger("heartbeats")


class HeartbeatMonitor:
    """Records the heartbeats of unmanaged runs.

    Args:
        core: The context that all handlers share.
        adopt: Starts the controller of an experiment, which sends its data to other services.
    """

    def __init__(self, core: ServiceContext, *, adopt: Callable[[str], None]) -> None:
        self._core = core
        self._adopt = adopt
        self._leases = Leases(core.clock, ttl=TTL_SECONDS)
        self._live = Remembered(core.database, runs.unmanaged)

    def note(self, run: runs.Run) -> None:
        """A run sent a heartbeat."""
        self._leases.renew(run.allocation_id)
        self._core.notifier.notify(watched(run.experiment_id))

    def ended(self, experiment_id: str) -> None:
        """A run of an experiment ended."""
        self._adopt(experiment_id)
        self._core.notifier.notify(watched(experiment_id))

    async def run(self) -> None:
        """Looks for silent runs until the service stops."""

        async def watch() -> float:
            await self.look()
            return _TICK_SECONDS

        failures = LoggedBackoff(_log, "the check for silent runs failed")
        await repeat(watch, notifier=self._core.notifier, failures=failures)

    async def look(self) -> None:
        """Ends the runs that were silent for too long."""
        live = {run.allocation_id: run for run in await self._live.get()}
        for allocation_id in self._leases.expired(live):
            run = live[allocation_id]
            _log.info("a run outside of the cluster fell silent", allocation=allocation_id)
            await self._core.database.write(
                partial(
                    tracking.end,
                    trial_id=run.trial_id,
                    run=run.run,
                    outcome=RunOutcome.LOST,
                    failure=f"it sent no heartbeat for {TTL_SECONDS:.0f} s",
                    timing=self._core.timing(),
                )
            )
            self._leases.forget(allocation_id)
            self.ended(run.experiment_id)
