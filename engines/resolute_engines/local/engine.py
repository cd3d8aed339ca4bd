"""The engine ``local``: supervisors are processes of this machine, which outlive this process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import structlog

from resolute.contracts.run.launch_order import LaunchOrder
from resolute_engines.environment import SupervisorTerms
from resolute_engines.kit.late_kills import LateKills
from resolute_engines.kit.named_tasks import NamedTasks
from resolute_engines.kit.run_directories.container import RunContainer, containers_in
from resolute_engines.kit.run_directories.deliveries import Deliveries
from resolute_engines.kit.run_directories.held_files import HeldFiles
from resolute_engines.kit.run_directories.process_exit import POLL_SECONDS, wait_for_exit
from resolute_engines.local.slots import assign_to_nodes, detect_slots
from resolute_engines.local.supervisor_parent import SupervisorParent
from resolute_engines.protocol import (
    AllocationSpec,
    ContainerReport,
    ContainerState,
    Pool,
)
from resolute_engines.settings import DEFAULT_POOL

_SUPERVISOR_PARENT_LOG = "supervisor-parent.log"
_TERMS = SupervisorTerms()
_log = structlog.get_logger("local")


class LocalEngine:
    """Runs allocations on the slots of this machine.

    Args:
        runs: The directory with the run directories, ``<allocation>/<container rank>``.
        slots: Number of slots; None for the number of GPUs, or of cores without GPUs.
        terms: Parameters for every supervisor.
        nodes: Number of machines that this one simulates, each with a share of the slots and its own loopback
            address, so that trials across several machines can be tested on one.
        address: Current ``host:port`` of the services, for the data of ended runs; empty for the address at
            the start of the run.
        pool: Name of its pool.
        starts_ahead: Whether ``watch`` starts the parent of supervisors, or the first launch does.
    """

    prompt = True

    def __init__(
        self,
        runs: Path,
        *,
        slots: int | None = None,
        terms: SupervisorTerms = _TERMS,
        nodes: int = 1,
        address: str = "",
        pool: str = DEFAULT_POOL,
        starts_ahead: bool = True,
    ) -> None:
        self._runs = runs
        self._slots = assign_to_nodes(detect_slots(slots), nodes)
        self._pool = Pool(name=pool, slots=self._slots, runs_here=True)
        self._terms = terms
        self._starts_ahead = starts_ahead
        self._reports: asyncio.Queue[ContainerReport | None] = asyncio.Queue()
        self._watchers = NamedTasks("local-watch")
        self._late_kills = LateKills("local", self.kill)
        self.backlog = Deliveries(
            runs,
            address=address,
            log_wait=terms.log_wait,
            is_over=lambda container: not container.locked,
            until_over=self._until_unlocked,
        )
        self.run_files = HeldFiles(runs)
        self._supervisor_parent = SupervisorParent(runs.with_name(_SUPERVISOR_PARENT_LOG))

    def pools(self) -> Sequence[Pool]:
        """The one pool of this machine."""
        return (self._pool,)

    async def launch(self, spec: AllocationSpec) -> None:
        """Starts the supervisors of an allocation; those that live, or ended already, are left alone.

        Raises:
            OSError: They cannot be started, because the disk is full for example.
        """
        for rank, slot_ids in enumerate(spec.placements):
            container = RunContainer(self._runs, spec.allocation_id, rank)
            await asyncio.to_thread(
                container.start, self._order(spec, rank, slot_ids), self._supervisor_parent.fork
            )
            self._watch_one(container)

    def _order(self, spec: AllocationSpec, rank: int, slot_ids: Sequence[int]) -> LaunchOrder:
        slots = {slot.id: slot for slot in self._slots}
        node = slots[slot_ids[0]].node if slot_ids else 0
        devices = tuple(slots[number].device for number in slot_ids if slots[number].device)
        return replace(
            self._terms.order(spec, rank, slot_kind=slots[slot_ids[0]].kind.value if slot_ids else "cpu"),
            devices=devices,
            agent_id=self._pool.machine_of(slot_ids),
            bind_address=f"127.0.0.{1 + node}",
            python=sys.executable,
            warm_directory=str(self._runs.absolute().with_name("warm")),
            overlays=str(self._runs.absolute().with_name("overlays")),
        )

    async def inspect(self, allocation_id: str) -> Sequence[ContainerReport]:
        """Tells the state of every container by rank, and ends what a lost supervisor left running."""
        reports = []
        for container in containers_in(self._runs, allocation_id):
            report = await asyncio.to_thread(container.inspect)
            if report.state is ContainerState.RUNNING:
                self._watch_one(container)
            reports.append(report)
        return reports

    async def stop(self, allocation_id: str, *, grace: float) -> None:
        """Asks an allocation to exit by SIGTERM, and kills it once the grace is over."""
        for container in containers_in(self._runs, allocation_id):
            await asyncio.to_thread(container.terminate)
        self._late_kills.plan(allocation_id, grace=grace)

    async def kill(self, allocation_id: str) -> None:
        """Ends every process of an allocation at once, its supervisors included."""
        for container in containers_in(self._runs, allocation_id):
            await asyncio.to_thread(container.kill)

    async def release(self, allocation_id: str, *, token: str = "") -> None:
        """Forgets an allocation that was settled, and cleans up behind it in the background."""
        self._late_kills.drop(allocation_id)
        await self.backlog.release(allocation_id, token=token)

    async def leftovers(self) -> Sequence[str]:
        """Names every allocation of which something is on disk and which was not released."""
        return self.backlog.leftovers()

    async def watch(self) -> AsyncIterator[ContainerReport]:
        """Reports each container whose supervisor ended, until ``close``."""
        if self._starts_ahead:
            await asyncio.to_thread(self._supervisor_parent.start)
        await self.backlog.resume()
        while (report := await self._reports.get()) is not None:
            yield report

    async def close(self) -> None:
        """Ends the watching. Supervisors continue."""
        await self._late_kills.close()
        await self._watchers.close()
        await self.backlog.close()
        await asyncio.to_thread(self._supervisor_parent.close)
        await self._reports.put(None)

    def _watch_one(self, container: RunContainer) -> None:
        self._watchers.start(repr(container), self._report_end(container))

    async def _report_end(self, container: RunContainer) -> None:
        while True:
            await self._until_unlocked(container)
            report = await asyncio.to_thread(container.inspect)
            if report.state is not ContainerState.RUNNING:
                break
            await asyncio.sleep(POLL_SECONDS)
        if report.state is ContainerState.UNKNOWN:
            report = container.never_started()
        await self._reports.put(report)

    async def _until_unlocked(self, container: RunContainer) -> None:
        while container.locked:
            await wait_for_exit(container.supervisor)
        self.backlog.reap()
