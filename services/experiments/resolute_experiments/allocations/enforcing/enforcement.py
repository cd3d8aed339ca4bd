"""Enforcement on one engine: ends runs that must end, and handles runs without heartbeats."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from resolute_engines.kit.attempts import try_each
from resolute_engines.layout import layout
from resolute_experiments.allocations.contact import EngineContact
from resolute_experiments.allocations.enforcing.stragglers import Stragglers
from resolute_experiments.allocations.launching.launches import Launches
from resolute_experiments.allocations.leases import Leases
from resolute_experiments.allocations.watching.container_ends import ContainerEnds
from resolute_experiments.allocations.watching.waiting_containers import WaitingContainers
from resolute_experiments.allocations.watching.watch import Watch
from resolute_experiments.context import ServiceContext
from resolute_experiments.store import runs

_KILL_GRACE_SECONDS = 15.0

_log = structlog.get_logger("fleet")


class Enforcement:
    """Ends runs that did not exit when asked, runs that wait for a failed container, and lost runs.

    Args:
        contact: The engine.
        core: The service's database and clock.
        launches: The launched runs.
        watch: Receives the reports of the engine.
        ends: Records the ends of containers.
        waiting: The containers that have not started.
        leases: The leases of runs.
    """

    def __init__(
        self,
        contact: EngineContact,
        core: ServiceContext,
        *,
        launches: Launches,
        watch: Watch,
        ends: ContainerEnds,
        waiting: WaitingContainers,
        leases: Leases,
    ) -> None:
        self._contact = contact
        self._core = core
        self._launches = launches
        self._watch = watch
        self._ends = ends
        self._waiting = waiting
        self._leases = leases
        self._stragglers = Stragglers(core, leases)
        self._stopped: set[str] = set()
        """Allocations that were taken back because of their signal while something of them waited."""

    async def enforce(self, live: Sequence[runs.Run]) -> None:
        """Ends what must end of the engine's runs that were not settled.

        Raises:
            Exception: What failed first; the rest was done all the same.
        """
        self._stopped &= {run.allocation_id for run in live}
        steps = (self._end_late, self._end_stragglers, self._look_after_silent)
        await try_each(lambda step: step(live), steps, at_once=1)

    async def _end_late(self, live: Sequence[runs.Run]) -> None:
        now = self._core.clock.time()

        async def end(run: runs.Run) -> None:
            deadline, allocation_id = run.signal_deadline, run.allocation_id
            if deadline is None:
                return
            if run.kill and now > deadline + _KILL_GRACE_SECONDS:
                await self._contact.kill(allocation_id)
            elif allocation_id in self._waiting and allocation_id not in self._stopped:
                # A container that waits has no supervisor yet that could receive the signal.
                stop = self._contact.engine.stop(allocation_id, grace=max(deadline - now, 0.0))
                await self._contact.ask(stop)
                self._stopped.add(allocation_id)

        await try_each(end, live)

    async def _end_stragglers(self, live: Sequence[runs.Run]) -> None:
        """Ends the containers of a run of which another has failed: they might wait for it forever."""
        pools = {pool.name: pool for pool in self._contact.engine.pools()}
        distributed = [run for run in live if len(layout(pools[run.resource_pool], run.slot_ids)) > 1]
        await try_each(self._end_straggler, await self._stragglers.overdue(distributed))

    async def _end_straggler(self, allocation_id: str) -> None:
        _log.info("another container has failed: the rest is ended", allocation=allocation_id)
        await self._stragglers.mark(allocation_id)
        await self._contact.kill(allocation_id)

    async def _look_after_silent(self, live: Sequence[runs.Run]) -> None:
        # What waits in the engine's queue renews no lease, and the watch reports when it begins.
        names = [
            run.allocation_id
            for run in live
            if run.allocation_id in self._launches and not self._waiting.nothing_began(run.allocation_id)
        ]
        await try_each(self._look_after, self._leases.expired(names))

    async def _look_after(self, allocation_id: str) -> None:
        """Asks after a run that fell silent: one that the engine does not know any more is lost.

        So is one that never renewed its lease: its machine may have died before its supervisor began.
        """
        reports = await self._contact.ask(self._contact.engine.inspect(allocation_id))
        # Asked once for each lease that runs out, not at each look.
        self._leases.renew(allocation_id)
        for report in reports:
            await self._watch.note(report)
        if not reports:
            run = await self._core.database.read(lambda c: runs.get(c, allocation_id))
            containers = await self._core.database.read(lambda c: runs.containers_of(c, allocation_id))
            await self._ends.note_all_lost(run, containers)
