"""The engine ``slurm``: one job for each allocation, with a supervisor on each node."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import structlog

from resolute.contracts.calls.logged_backoff import LoggedBackoff, until_it_succeeds
from resolute.contracts.run.shim_files import KILL, STOP
from resolute.errors import UnavailableError
from resolute_engines.environment import SupervisorTerms
from resolute_engines.kit.late_kills import LateKills
from resolute_engines.kit.polling import Polling
from resolute_engines.kit.run_directories.container import RunContainer, containers_in
from resolute_engines.kit.run_directories.deliveries import Deliveries
from resolute_engines.kit.run_directories.held_files import HeldFiles
from resolute_engines.kit.shared_storage import SharedStorage
from resolute_engines.kit.watched_allocations import WatchedAllocations
from resolute_engines.protocol import (
    AllocationSpec,
    ContainerReport,
    ContainerState,
    EngineEvent,
    NodeCheck,
    Placement,
    Pool,
    Slot,
    SlotKind,
)
from resolute_engines.slurm.client import SlurmClient
from resolute_engines.slurm.commands.jobs import Job, JobState
from resolute_engines.slurm.node_check import check_pool
from resolute_engines.slurm.request import (
    SlurmNodes,
    job_of,
    note_submitted,
    prepare,
)
from resolute_engines.slurm.settings import SlurmPoolOptions
from resolute_engines.slurm.states import container_reports, is_over, lacks_an_end
from resolute_engines.slurm.unsupported_fields import requirements, supported_fields, unsupported_fields

_SHIMS_SECONDS = 3.0
"""How long shims may take to end what they keep before Slurm is asked to."""
_SHIMS_POLL_SECONDS = 0.1
_LOOKS_A_CAPACITY = 30
"""How many looks at the jobs go by between two at the nodes."""
_log = structlog.get_logger("slurm")


class SlurmEngine:
    """Runs allocations as jobs of one Slurm cluster.

    Args:
        client: Submits and lists jobs.
        pools: The settings of each pool, by name.
        runs: The directory with the run directories, on storage that this machine and all nodes share.
        terms: Parameters for every supervisor.
        nodes: The paths and the interpreter on Slurm's nodes.
        cluster: Prefix of the names of this cluster's jobs.
        own_address: ``host:port`` at which this machine reaches the services.
        poll_seconds: Seconds between two polls of the jobs.
    """

    prompt = False

    def __init__(
        self,
        client: SlurmClient,
        *,
        pools: Mapping[str, SlurmPoolOptions],
        runs: Path,
        terms: SupervisorTerms,
        nodes: SlurmNodes,
        cluster: str,
        own_address: str = "",
        poll_seconds: float = 1.0,
    ) -> None:
        self._client = client
        self._settings = dict(pools)
        self._polling = Polling(
            {name: _pool(name, settings) for name, settings in pools.items()},
            look_at_runs=self._look_at_jobs,
            look_at_nodes=self._look_at_nodes,
            seconds=poll_seconds,
            looks_a_capacity=_LOOKS_A_CAPACITY,
        )
        self._runs = runs
        self._terms = terms
        self._nodes = nodes
        self._prefix = f"{cluster}-"
        self._poll_seconds = poll_seconds
        self._watched = WatchedAllocations()
        """What was last reported of each container of the allocations that have not ended."""
        self._unreadable: set[str] = set()
        """Those of which the log says that their files cannot be read."""
        self._late_kills = LateKills("slurm", self.kill)
        self._launches: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Held while an allocation is submitted: what is asked for twice at once is submitted once."""
        self._storage = SharedStorage(runs, name=f"runs-{cluster}")
        self.backlog = Deliveries(
            runs,
            address=own_address,
            log_wait=terms.log_wait,
            is_over=is_over,
            until_over=self._until_over,
            storage=self._storage,
        )
        self.run_files = HeldFiles(runs, self._storage)

    def pools(self) -> Sequence[Pool]:
        """Its pools, with the slots that Slurm's nodes had at the last look."""
        return self._polling.pools

    async def launch(self, spec: AllocationSpec) -> None:
        """Submits the job of an allocation; one that Slurm has, or had, is left alone.

        Raises:
            InvalidConfigError: The pool refuses it; the message has the reason.
            FailedPreconditionError: Slurm does.
            UnavailableError: Slurm does not answer, or the storage of the runs: whether it has the job is
                not known.
        """
        async with self._launches[spec.allocation_id]:
            await self._launch(spec)

    async def _launch(self, spec: AllocationSpec) -> None:
        pool, folder = self._settings[spec.pool], self._runs / spec.allocation_id
        job = job_of(spec, name=self._name(spec.allocation_id), folder=folder, pool=pool, nodes=self._nodes)
        known = await self.inspect(spec.allocation_id)
        if any(report.state is not ContainerState.UNKNOWN for report in known):
            return
        await self._storage.ask(
            spec.allocation_id,
            lambda: prepare(spec, runs=self._runs, pool=pool, terms=self._terms),
        )
        submitted = await self._client.submit(job)
        await self._storage.ask(spec.allocation_id, lambda: note_submitted(folder, submitted.id))
        self._watched.add(spec.allocation_id, containers=len(spec.placements))

    async def inspect(self, allocation_id: str) -> Sequence[ContainerReport]:
        """Tells the state of every container by rank, and watches those that have not ended."""
        if not await self._has_folder(allocation_id):
            return []
        reports = await self._look_at(allocation_id)
        self._watched.add_unless_ended(allocation_id, reports)
        return reports

    async def _look_at(self, allocation_id: str) -> list[ContainerReport]:
        job = await self._client.find(self._name(allocation_id)) or await self._forgotten(allocation_id)
        return await self._reports(allocation_id, job)

    async def _reports(self, allocation_id: str, job: Job | None) -> list[ContainerReport]:
        return await self._storage.ask(
            allocation_id, lambda: container_reports(self._runs, allocation_id, job)
        )

    async def _forgotten(self, allocation_id: str) -> Job | None:
        """What accounting has of a job that the controller does not know.

        Only where that matters, so not of what was never submitted or reported its own end.

        Raises:
            UnavailableError: It is not known yet.
        """
        if not await self._storage.ask(allocation_id, lambda: lacks_an_end(self._runs, allocation_id)):
            return None
        return await self._client.accounting.find(self._name(allocation_id))

    async def stop(self, allocation_id: str, *, grace: float) -> None:
        """Asks an allocation to exit by its shims, and ends its job once the grace is over."""
        if not await self._has_folder(allocation_id):
            return
        await self._storage.ask(allocation_id, (self._runs / allocation_id / STOP).touch)
        job = await self._client.find(self._name(allocation_id))
        if job is not None and job.state is JobState.QUEUED:
            await self._client.cancel(self._name(allocation_id))
        else:
            self._late_kills.plan(allocation_id, grace=grace)

    async def kill(self, allocation_id: str) -> None:
        """Ends every process of an allocation at once, its supervisors and shims included."""
        name = self._name(allocation_id)
        job = await self._client.find(name)
        if job is None or job.state is JobState.ENDED:
            return
        if job.state is JobState.RUNNING and await self._has_folder(allocation_id):
            # Slurm asks before it kills, and what is asked would report an end of its own. Shims just kill.
            await self._storage.ask(allocation_id, (self._runs / allocation_id / KILL).touch)
            await self._until_left(allocation_id)
        await self._client.cancel(name)

    async def _until_left(self, allocation_id: str) -> None:
        """Waits for the shims of an allocation, but not for long: some may be gone with their nodes."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + _SHIMS_SECONDS
        containers = await self._storage.ask(allocation_id, lambda: containers_in(self._runs, allocation_id))
        while clock() < deadline and not await self._storage.ask(  # noqa: ASYNC110 - files send no events
            allocation_id, lambda: all(map(is_over, containers))
        ):
            await asyncio.sleep(_SHIMS_POLL_SECONDS)

    async def release(self, allocation_id: str, *, token: str = "") -> None:
        """Forgets an allocation that was settled, and cleans up behind it in the background."""
        self._watched.remove(allocation_id)
        self._unreadable.discard(allocation_id)
        self._launches.pop(allocation_id, None)
        self._late_kills.drop(allocation_id)
        if not await self._has_folder(allocation_id):
            # Its submission may have arrived late, after an earlier release had removed all of it.
            await self._client.cancel(self._name(allocation_id))
        await self.backlog.release(allocation_id, token=token)

    async def leftovers(self) -> Sequence[str]:
        """Names every allocation that was not released, by its run directories or its job."""
        jobs = await self._client.live(prefix=self._prefix)
        named = {job.name.removeprefix(self._prefix) for job in jobs}
        there = await self._storage.ask("", self.backlog.leftovers)
        # The job of one that was released ends by itself soon.
        without_folder = {name for name in named if not await self._has_folder(name)}
        return sorted({*there, *without_folder})

    async def watch(self) -> AsyncIterator[EngineEvent]:
        """Tells of containers that began or ended, and of nodes that came or went, until ``close``.

        Raises:
            UnavailableError: Slurm does not answer; to be called again.
        """
        await self.backlog.resume()
        async for event in self._polling.events():
            yield event

    async def _look_at_jobs(self) -> list[ContainerReport]:
        changed: list[ContainerReport] = []
        names = self._watched.names()
        if not names:
            return changed
        live = {job.name: job for job in await self._client.live(prefix=self._prefix)}
        for allocation_id in names:
            name = self._name(allocation_id)
            job = live[name] if name in live else await self._client.find(name)
            try:
                job = job or await self._forgotten(allocation_id)
                reports = await self._reports(allocation_id, job)
            except UnavailableError:
                # Slurm's controller answers: other runs wait neither for its accounting nor for these files.
                continue
            except Exception:  # noqa: BLE001 - one run must not keep the others from being watched
                if allocation_id not in self._unreadable:
                    _log.exception("what a run left cannot be read", allocation=allocation_id)
                    self._unreadable.add(allocation_id)
                continue
            self._unreadable.discard(allocation_id)
            if reports or job is None:
                # What Slurm has was not forgotten: the storage of the runs is away.
                changed += self._watched.changes(allocation_id, reports)
        return changed

    async def _look_at_nodes(self) -> dict[str, Pool]:
        pools = {}
        for name, settings in self._settings.items():
            nodes = [node for node in await self._client.nodes(partition=settings.partition) if node.usable]
            pools[name] = _pool(name, settings, nodes=len(nodes))
        return pools

    async def check_nodes(self) -> Sequence[NodeCheck]:
        """Looks from the nodes of each pool, by a job of seconds: whether they see the runs, and Resolute."""
        return [
            await check_pool(self._client, name=name, pool=pool, directory=self._runs, nodes=self._nodes)
            for name, pool in self._settings.items()
        ]

    async def close(self) -> None:
        """Ends the watching. Jobs continue."""
        self._polling.close()
        await self._late_kills.close()
        await self.backlog.close()
        self._storage.close()

    async def _until_over(self, container: RunContainer) -> None:
        """Ends the job of a released container, and waits until Slurm says that it has ended."""

        async def ended() -> bool:
            await self.kill(container.allocation_id)
            job = await self._client.find(self._name(container.allocation_id))
            return job is None or job.state is JobState.ENDED

        failures = LoggedBackoff(_log, "Slurm does not answer")
        while not await until_it_succeeds(ended, failures, retried=(UnavailableError,)):
            failures.succeeded()
            await asyncio.sleep(self._poll_seconds)

    async def _has_folder(self, allocation_id: str) -> bool:
        return await self._storage.ask(allocation_id, (self._runs / allocation_id).is_dir)

    def _name(self, allocation_id: str) -> str:
        return f"{self._prefix}{allocation_id}"


def _pool(name: str, settings: SlurmPoolOptions, *, nodes: int = 0) -> Pool:
    size, kind = settings.slots_per_node, SlotKind(settings.slot_type)
    slots = tuple(Slot(number, kind, node=number // size) for number in range(nodes * size))
    return Pool(
        name=name,
        placement=Placement.ENGINE,
        slots=slots,
        slots_per_node=size,
        most_slots=settings.max_slots or (len(slots) or None),
        taken_out_by="`scontrol update NodeName=NODE State=DRAIN Reason=WHY`, and back by State=RESUME",
        most_allocations=settings.most_allocations,
        supported_fields=supported_fields(settings),
        unsupported_fields=unsupported_fields(settings),
        requirements=requirements(settings, name=name),
    )
