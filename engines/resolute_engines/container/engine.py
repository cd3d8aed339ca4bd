"""The engine ``container``: it runs each part of an allocation in a container, by Docker's API."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

import structlog

from resolute.contracts.calls.backoff import Backoff
from resolute.contracts.calls.logged_backoff import LoggedBackoff, until_found
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.errors import QuotaError, ResoluteError
from resolute_engines.configs.host_access import HostAccess
from resolute_engines.configs.requirements import require
from resolute_engines.configs.unsupported_fields import STARTS_COLD
from resolute_engines.container.client import DockerApi
from resolute_engines.container.containers import Containers, ListedContainer, owner_of
from resolute_engines.container.files import VOLUME, launch_files
from resolute_engines.container.held_files import HeldFiles
from resolute_engines.container.images.names import registry_header
from resolute_engines.container.images.pulls import Pulls
from resolute_engines.container.releases import ContainerReleases
from resolute_engines.container.request import SUPPORTED_FIELDS, ContainerRequest
from resolute_engines.container.settings import ContainerEngineOptions, ContainerPoolOptions
from resolute_engines.environment import SupervisorTerms
from resolute_engines.kit.attempts import try_each
from resolute_engines.kit.late_kills import LateKills
from resolute_engines.kit.named_tasks import NamedTasks
from resolute_engines.kit.reports import report_of
from resolute_engines.protocol import (
    AllocationSpec,
    ContainerReport,
    ContainerState,
    EngineEvent,
    Pool,
    Slot,
    SlotKind,
)

_LONGEST_PAUSE_SECONDS = 60.0
"""Between two attempts to reach an engine that is away."""
_log = structlog.get_logger("container")


@dataclass(frozen=True, kw_only=True)
class EngineHost:
    """The engine's machine: the parts that configs may use, and the runtime that is mounted from it."""

    access: HostAccess
    """What of it configs may have."""
    make_runtime: Callable[[], Path]
    """Makes the runtime where it is missing, and returns its directory there. It blocks."""
    remove_runtimes: Callable[..., None] | None
    """Removes others than that of a path, but those ``used``; None where others make and remove them."""


class ContainerEngine:
    """Runs allocations as containers.

    Args:
        api: The daemon.
        options: The engine's settings.
        pools: The settings of its pools, by name.
        terms: Parameters for every supervisor.
        host: The engine's machine.
        cluster_id: UUID of the cluster, which is a label of its containers.
        own_address: Current ``host:port`` of the services, for the data of ended runs; empty for the address
            at the start of the run.
    """

    prompt = False

    def __init__(
        self,
        api: DockerApi,
        *,
        options: ContainerEngineOptions,
        pools: Mapping[str, ContainerPoolOptions],
        terms: SupervisorTerms,
        host: EngineHost,
        cluster_id: str,
        own_address: str = "",
    ) -> None:
        self._api = api
        self._options = options
        self._pool_options = pools
        self._terms = terms
        self._host = host
        self._own_address = own_address
        self._pools = tuple(_pool(name, one, host.access) for name, one in pools.items())
        self._containers = Containers(api, cluster_id=cluster_id)
        self._events: asyncio.Queue[EngineEvent | None] = asyncio.Queue()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """One for each operation that must not run twice at a time, while it runs."""
        self._tasks = NamedTasks("container")
        self._late_kills = LateKills("container", self.kill)
        self._pulls = Pulls(
            tell=self._events.put_nowait, kill=self._kill_containers, timeout=options.image_timeout
        )
        self._runtime = ""
        self._unmounted: set[str] = set()
        """Directories above those of workspaces that no container has any more, as none gets them."""
        self.backlog = ContainerReleases(
            api,
            self._containers,
            send=self._send,
            outage_timeout=terms.outage_timeout,
            log_wait=terms.log_wait,
        )
        self.run_files = HeldFiles(api, self._containers, list_files=self._list_files)

    def pools(self) -> Sequence[Pool]:
        """Its pools, as the settings have them."""
        return self._pools

    async def launch(self, spec: AllocationSpec) -> None:
        """Creates and starts the containers of an allocation; those that are there are left alone.

        An image that has to be pulled is pulled after this has returned, and the containers start after that.
        """
        # Admission has refused other configs, by the settings of that time: they may be others now.
        require(spec.config, (self._host.access,))
        if spec.checkpoint_directory:
            await self._require_unmounted(posixpath.dirname(posixpath.dirname(spec.checkpoint_directory)))
        request = await self._request(spec)
        async with self._lock(spec.allocation_id):
            there = await self._containers.of(spec.allocation_id)
            if len(there) < len(spec.placements) and not await self._has_image(request):
                self._pulls.begin(
                    spec.allocation_id,
                    containers=len(spec.placements),
                    reason=f"image {request.image} is being pulled",
                    launch=partial(self._pull_and_launch, request),
                )
            else:
                await self._launch(request, there)

    async def _require_unmounted(self, directory: str) -> None:
        """Makes sure that no trial has the directory above those of workspaces, as earlier releases gave it.

        It could put a link in the place of one of these, which is mounted next.

        Raises:
            QuotaError: One has it. It is waited for.
        """
        if directory in self._unmounted:
            return
        if holders := await self._containers.running_with(directory):
            raise QuotaError(
                f"{directory} is mounted into {', '.join(holders)}, begun by an earlier release, which could "
                "redirect what is mounted now: wait for the end of their trials, or pause them"
            )
        self._unmounted.add(directory)

    async def _has_image(self, request: ContainerRequest) -> bool:
        return not request.pulls_always and await self._api.has_image(request.image)

    async def _pull_and_launch(self, request: ContainerRequest) -> None:
        allocation_id = request.spec.allocation_id
        async for progress in self._api.pull(request.image, credentials=self._credentials(request.image)):
            self._pulls.say(allocation_id, f"image {request.image} is being pulled: {progress}")
        async with self._lock(allocation_id):
            await self._launch(request, await self._containers.of(allocation_id))

    async def _launch(self, request: ContainerRequest, containers: Sequence[ListedContainer]) -> None:
        spec, there = request.spec, {container.rank for container in containers}
        network = ""
        if len(there) < len(spec.placements) and self._options.networks:
            network = self._containers.prefix(spec.allocation_id)
            await self._containers.networks.make(network, request.labels)
        for rank in range(len(spec.placements)):
            name = self._containers.name(spec.allocation_id, rank)
            if rank not in there:
                address = await self._containers.networks.address(network, rank) if network else ""
                body = request.body(rank, name=name, network=network, address=address)
                await self._containers.create(name, body, request.labels)
        for container in await self._containers.of(spec.allocation_id):
            if container.unbegun:
                await self._start(container, request)
            if not container.ended:
                # Also of one whose start was not answered: it waits.
                await self._events.put(report_of(container, ContainerState.RUNNING))
            self._watch_one(container)

    async def _start(self, container: ListedContainer, request: ContainerRequest) -> None:
        address = ""
        if self._options.networks:
            network = self._containers.prefix(container.allocation_id)
            address = await self._containers.networks.address(network, container.rank)
        order = replace(self._order(request.spec, container.rank, address), links=request.links)
        owner = owner_of(self._options.user)
        await self._api.put_archive(container.name, VOLUME, launch_files(order, owner=owner))
        await self._api.post(f"/containers/{container.name}/start")

    def _credentials(self, image: str) -> str:
        path = self._options.credentials
        return registry_header(Path(path), image) if path else ""

    async def inspect(self, allocation_id: str) -> Sequence[ContainerReport]:
        """Tells the state of every container by rank."""
        if allocation_id in self.backlog:
            return []
        reports = []
        for container in await self._containers.of(allocation_id):
            report = await self._containers.report(container)
            if report.state is ContainerState.RUNNING:
                self._watch_one(container)
            reports.append(report)
        there = {report.container_rank for report in reports}
        reports += self._pulls.reports(allocation_id, there=there)
        return sorted(reports, key=lambda report: report.container_rank)

    async def stop(self, allocation_id: str, *, grace: float) -> None:
        """Sends SIGTERM to the supervisors, and kills what outlasts the grace; what waits just ends."""
        running = [container for container in await self._withdrawn(allocation_id) if container.running]
        for running_container in running:
            await self._containers.signal(running_container, "SIGTERM")
        if running:
            self._late_kills.plan(allocation_id, grace=grace)

    async def _withdrawn(self, allocation_id: str) -> list[ListedContainer]:
        """The containers of an allocation; no more will be started of it."""
        # One that is being started right now is waited for.
        async with self._lock(allocation_id):
            there = await self._containers.of(allocation_id)
            self._pulls.withdraw(allocation_id, there={found.rank for found in there})
        return there

    async def kill(self, allocation_id: str) -> None:
        """Ends the containers of an allocation at once."""
        await self._withdrawn(allocation_id)
        await self._kill_containers(allocation_id)

    async def _kill_containers(self, allocation_id: str) -> None:
        await try_each(self._containers.kill, await self._containers.of(allocation_id))

    async def _send(self, container: ListedContainer, token: str, *, note_late_lines: bool) -> bool:
        address = self._terms.address or self._own_address
        options = ["--master", address] if address else []
        if note_late_lines:
            options.append("--note-late-lines")
        async with self._lock(f"send {container.name}"):
            return await self._containers.upload_orphan(
                container, await self._request_beside(container), token=token, arguments=options
            )

    async def _list_files(self, container: ListedContainer) -> bytes:
        async with self._lock(f"list {container.name}"):
            return await self._containers.list_files(container, await self._request_beside(container))

    async def _request_beside(self, container: ListedContainer) -> ContainerRequest:
        """How a container is to be that works on what an ended one left."""
        # Its name may be another image's by now, or none's.
        image = (await self._api.get(f"/containers/{container.name}/json"))["Image"]
        spec = AllocationSpec(
            allocation_id=container.allocation_id,
            placements=((),),
            address="",
            token="",
            pool=self._pools[0].name,
            config={"environment": {"image": {"cpu": image, "cuda": image}}},
        )
        return await self._request(spec)

    async def release(self, allocation_id: str, *, token: str = "") -> None:
        """Forgets an allocation; what it left is sent, and it is removed, in the background."""
        self._late_kills.drop(allocation_id)
        self._pulls.forget(allocation_id)
        await self.run_files.forget(allocation_id)
        self.backlog.release(allocation_id, token=token)

    async def leftovers(self) -> Sequence[str]:
        """Names every allocation of this cluster of which the engine has something."""
        return [
            allocation
            for allocation in await self._containers.allocations()
            if allocation not in self.backlog
        ]

    async def watch(self) -> AsyncIterator[EngineEvent]:
        """Tells of containers that began or ended, until ``close``."""
        while (event := await self._events.get()) is not None:
            yield event

    async def close(self) -> None:
        """Ends the watching. Containers continue."""
        await self._pulls.close()
        await self._late_kills.close()
        await self._tasks.close()
        await self.backlog.close()
        await self.run_files.close()
        await self._api.close()
        await self._events.put(None)

    def _watch_one(self, container: ListedContainer) -> None:
        self._tasks.start(f"watch {container.name}", self._report_end(container))

    async def _report_end(self, container: ListedContainer) -> None:
        failures = LoggedBackoff(
            _log,
            "the end of a container is not known",
            longest=_LONGEST_PAUSE_SECONDS,
            container=container.name,
        )

        async def look() -> ContainerReport | None:
            await self._api.until_stopped(container.name)
            there = [
                found
                for found in await self._containers.of(container.allocation_id)
                if found.rank == container.rank
            ]
            if there:
                report = await self._containers.report(there[0])
            else:
                report = report_of(container, ContainerState.ENDED, reason="somebody removed the container")
            return report if report.state is ContainerState.ENDED else None

        end = await until_found(look, failures, pauses=Backoff(longest=_LONGEST_PAUSE_SECONDS))
        await self._events.put(end)

    def _lock(self, name: str) -> asyncio.Lock:
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = asyncio.Lock()
        return lock

    async def _request(self, spec: AllocationSpec) -> ContainerRequest:
        async with self._lock("runtime"):
            if not self._runtime:
                folder = await asyncio.to_thread(self._host.make_runtime)
                self._runtime = str(folder)
                await self._remove_runtimes(folder)
        return ContainerRequest(
            spec=spec,
            labels=self._containers.labels(spec.allocation_id),
            engine=self._options,
            pool=self._pool_options[spec.pool or self._pools[0].name],
            runtime=self._runtime,
            access=self._host.access,
        )

    async def _remove_runtimes(self, folder: Path) -> None:
        """Removes the runtimes of earlier versions; what hinders that must not hinder a launch."""
        if self._host.remove_runtimes is None:
            return
        try:
            used = await self._containers.mounted()
            await asyncio.to_thread(self._host.remove_runtimes, folder, used=used)
        except (ResoluteError, OSError) as failure:
            _log.warning("runtimes of earlier versions are left", folder=str(folder), reason=str(failure))

    def _order(self, spec: AllocationSpec, rank: int, address: str) -> LaunchOrder:
        pool = next(pool for pool in self._pools if pool.name == (spec.pool or self._pools[0].name))
        kind = pool.slots[0].kind.value if pool.slots and spec.placements[rank] else "cpu"
        return replace(
            self._terms.order(spec, rank, slot_kind=kind),
            # CDI shows a container its own GPUs alone, numbered from 0.
            devices=tuple(map(str, range(len(spec.placements[rank])))) if kind == "gpu" else (),
            agent_id=pool.machine_of(spec.placements[rank]),
            bind_address=address or "127.0.0.1",
        )


def _pool(name: str, options: ContainerPoolOptions, access: HostAccess) -> Pool:
    gpus = tuple(Slot(number, SlotKind.GPU, device) for number, device in enumerate(options.gpus))
    slots = gpus or tuple(Slot(number, SlotKind.CPU) for number in range(options.slots or 1))
    size = options.slots_per_node or len(slots)
    placed = tuple(replace(slot, node=slot.id // size) for slot in slots)
    return Pool(
        name=name,
        slots=placed,
        supported_fields=SUPPORTED_FIELDS,
        unsupported_fields=(STARTS_COLD,),
        most_without_slots=options.max_aux_containers_per_agent,
        requirements=(access,),
        checkpoint_directories=access.checkpoint_directories,
    )
