"""The engine ``container``: a container for each part of an allocation, by Docker's API."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from weakref import WeakValueDictionary

import structlog

from resolute.contracts.calls.backoff import Backoff
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.errors import NotFoundError, ResoluteError, UnavailableError
from resolute_experiments.backoff import LoggedBackoff, until_it_succeeds
from resolute_experiments.resources.background.named_tasks import NamedTasks
from resolute_experiments.resources.container.api import DockerApi
from resolute_experiments.resources.container.containers import Containers, Found, owner_of
from resolute_experiments.resources.container.files import VOLUME, launch_files
from resolute_experiments.resources.container.request import EFFECTIVE_FIELDS, ContainerRequest
from resolute_experiments.resources.container.settings import ContainerEngineOptions, ContainerPoolOptions
from resolute_experiments.resources.protocol import (
    AllocationSpec,
    ContainerReport,
    ContainerState,
    EngineEvent,
    Pool,
    Slot,
    SlotKind,
)

_LONGEST_PAUSE_SECONDS = 60.0
"""Between two attempts to send what a run left, or to reach an engine that is away."""
_START_SECONDS = 20.0
"""What a container that sends lines may take to start."""
_log = structlog.get_logger("container")


@dataclass(frozen=True, kw_only=True)
class ContainerEngineTerms:
    """What an engine is told of the cluster."""

    cluster_id: str
    """UUID of the cluster."""
    address: str
    """``host:port`` of the services now; empty for where they were when a run began."""
    tls: Mapping[str, str] | None
    """Whom they trust there, as ``ClientTls.to_json`` has it; None for a plain port."""
    outage_timeout: float
    """Seconds that a run continues while no service answers."""
    log_wait: float
    """Seconds that the end of a run waits for the logs service to take the run's last lines."""
    make_runtime: Callable[[], Path]
    """Makes the runtime where it is missing, and returns its directory on the engine's machine. It blocks."""
    remove_runtimes: Callable[..., None] | None
    """Removes others than that of a path, but those ``used``; None where others make and remove them."""


class ContainerManager:
    """Runs allocations as containers.

    Args:
        api: The engine.
        options: Its settings.
        pools: Those of its pools, by name.
        terms: What it is told of the cluster.
    """

    prompt = False

    def __init__(
        self,
        api: DockerApi,
        *,
        options: ContainerEngineOptions,
        pools: Mapping[str, ContainerPoolOptions],
        terms: ContainerEngineTerms,
    ) -> None:
        self._api = api
        self._options = options
        self._pool_options = pools
        self._terms = terms
        self._pools = tuple(_pool(name, one) for name, one in pools.items())
        self._containers = Containers(api, cluster_id=terms.cluster_id)
        self._events: asyncio.Queue[EngineEvent | None] = asyncio.Queue()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """One for each thing that nobody does twice at a time, while somebody does it."""
        self._progress: dict[str, str] = {}
        """What is done for allocations that are being launched."""
        self._tasks = NamedTasks("container")
        self._runtime = ""
        self._released: set[str] = set()
        """Allocations of which the rest is being sent and removed."""
        self._undelivered: dict[str, float] = {}
        """Since when what some of them left could not be sent; monotonic seconds."""

    def pools(self) -> Sequence[Pool]:
        """Its pools, as the settings have them."""
        return self._pools

    async def launch(self, spec: AllocationSpec) -> None:
        """Creates and starts the containers of an allocation; those that are there are left alone."""
        request = await self._request(spec)
        async with self._lock(spec.allocation_id):
            try:
                await self._launch(request)
            finally:
                self._progress.pop(spec.allocation_id, None)

    async def _launch(self, request: ContainerRequest) -> None:
        spec = request.spec
        there = {found.rank: found for found in await self._containers.of(spec.allocation_id)}
        network = ""
        if len(there) < len(spec.placements):
            await self._pull(request)
            if self._options.networks:
                network = self._containers.prefix(spec.allocation_id)
                await self._containers.networks.make(network, request.labels)
        for rank in range(len(spec.placements)):
            name = self._containers.name(spec.allocation_id, rank)
            if rank not in there:
                address = await self._containers.networks.address(network, rank) if network else ""
                body = request.body(rank, name=name, network=network, address=address)
                await self._containers.create(name, body, request.labels)
        for found in await self._containers.of(spec.allocation_id):
            if found.unbegun:
                await self._start(found, request)
            self._watch_one(found)

    async def _start(self, found: Found, request: ContainerRequest) -> None:
        address = ""
        if self._options.networks:
            network = self._containers.prefix(found.allocation_id)
            address = await self._containers.networks.address(network, found.rank)
        order = self._order(request.spec, found.rank, address)
        owner = owner_of(self._options.user)
        await self._api.put_archive(found.name, VOLUME, launch_files(order, owner=owner))
        await self._api.post(f"/containers/{found.name}/start")
        await self._events.put(
            ContainerReport(
                allocation_id=found.allocation_id, container_rank=found.rank, state=ContainerState.RUNNING
            )
        )

    async def _pull(self, request: ContainerRequest) -> None:
        """Pulls the image where it is not there, and says how far that is."""
        if not request.pulls_always:
            try:
                await self._api.get(f"/images/{request.image}/json")
            except NotFoundError:
                pass
            else:
                return
        self._tell(request.spec.allocation_id, f"image {request.image} is being pulled")
        async for progress in self._api.pull(request.image, credentials=self._credentials(request.image)):
            self._tell(request.spec.allocation_id, f"image {request.image} is being pulled: {progress}")

    def _credentials(self, image: str) -> str:
        registry, separator, _ = image.partition("/")
        path = (self._options.credentials or {}).get(registry if separator else "docker.io")
        return Path(path).read_text().strip() if path else ""

    def _tell(self, allocation_id: str, reason: str) -> None:
        if self._progress.get(allocation_id) != reason:
            self._progress[allocation_id] = reason
            self._events.put_nowait(
                ContainerReport(
                    allocation_id=allocation_id,
                    container_rank=0,
                    state=ContainerState.STARTING,
                    reason=reason,
                )
            )

    async def inspect(self, allocation_id: str) -> Sequence[ContainerReport]:
        """Tells the state of every container by rank."""
        if allocation_id in self._released:
            return []
        reports = []
        for found in await self._containers.of(allocation_id):
            report = await self._containers.report(found)
            if report.state is ContainerState.RUNNING:
                self._watch_one(found)
            reports.append(report)
        return reports

    async def stop(self, allocation_id: str, *, grace: float) -> None:
        """Sends SIGTERM to the supervisors, and kills what outlasts the grace."""
        found = [one for one in await self._containers.of(allocation_id) if one.running]
        for one in found:
            await self._containers.signal(one, "SIGTERM")
        if found:
            self._tasks.start(f"stop {allocation_id}", self._kill_later(allocation_id, grace))

    async def _kill_later(self, allocation_id: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        backoff = LoggedBackoff(_log, "a run could not be ended", allocation=allocation_id)
        await until_it_succeeds(lambda: self.kill(allocation_id), backoff)

    async def kill(self, allocation_id: str) -> None:
        """Ends the containers of an allocation at once."""
        for found in await self._containers.of(allocation_id):
            await self._containers.kill(found)

    async def deliver_lines(self, tokens: Mapping[str, str]) -> bool:
        """Sends, for a bounded time, the lines of lost supervisors; the others have sent theirs."""
        lost = [
            (found, token)
            for allocation_id, token in tokens.items()
            for found in await self._containers.of(allocation_id)
            if found.ended and await self._containers.lost(found)
        ]
        if not lost:
            return True
        sending = [
            asyncio.create_task(
                self._send(found, token, "--note-late-lines"), name=f"container-lines-{found.name}"
            )
            for found, token in lost
        ]
        try:
            await asyncio.wait(sending, timeout=self._terms.log_wait + _START_SECONDS)
        finally:
            for one in sending:
                # The container of a late one goes on.
                one.cancel()
            answers = await asyncio.gather(*sending, return_exceptions=True)
        return all(answer is True for answer in answers)

    async def _send(self, found: Found, token: str, *arguments: str) -> bool:
        image = (await self._api.get(f"/containers/{found.name}/json"))["Config"]["Image"]
        spec = AllocationSpec(
            allocation_id=found.allocation_id,
            placements=((),),
            address="",
            token=token,
            pool=self._pools[0].name,
            config={"environment": {"image": {"cpu": image, "cuda": image}}},
        )
        address = self._options.services_address or self._terms.address
        options = [*(["--master", address] if address else []), *arguments]
        async with self._lock(f"send {found.name}"):
            return await self._containers.salvage(
                found, await self._request(spec), token=token, arguments=options
            )

    async def release(self, allocation_id: str, *, token: str = "") -> None:
        """Forgets an allocation; what it left is sent, and it is removed, in the background."""
        self._tasks.cancel(f"stop {allocation_id}")
        self._released.add(allocation_id)
        self._tasks.start(f"release {allocation_id}", self._clean(allocation_id, token))

    async def _clean(self, allocation_id: str, token: str) -> None:
        backoff = LoggedBackoff(
            _log, "a run cannot be removed yet", longest=_LONGEST_PAUSE_SECONDS, allocation=allocation_id
        )

        async def removed() -> None:
            try:
                await self._send_rest(allocation_id, token)
                await self._containers.remove(allocation_id)
            except Exception:
                self._undelivered.setdefault(allocation_id, SYSTEM_CLOCK.monotonic())
                raise

        await until_it_succeeds(removed, backoff)
        self._undelivered.pop(allocation_id, None)
        self._released.discard(allocation_id)

    async def _send_rest(self, allocation_id: str, token: str) -> None:
        for found in await self._containers.of(allocation_id):
            if found.running:
                await self._api.until_stopped(found.name)
            if not found.unbegun and not await self._send(found, token):
                raise UnavailableError(f"what {found.name} left could not be sent")

    async def leftovers(self) -> Sequence[str]:
        """Names every allocation of this cluster of which the engine has something."""
        return [one for one in await self._containers.allocations() if one not in self._released]

    async def unreported(self) -> Sequence[str]:
        """Names the released allocations of which something could not be sent yet."""
        return sorted(self._undelivered)

    async def backlog_seconds(self) -> float:
        """For how long something could not be sent."""
        now = SYSTEM_CLOCK.monotonic()
        return max((now - since for since in self._undelivered.values()), default=0.0)

    async def watch(self) -> AsyncIterator[EngineEvent]:
        """Tells of containers that began or ended, until ``close``."""
        while (event := await self._events.get()) is not None:
            yield event

    async def close(self) -> None:
        """Ends the watching. Containers continue."""
        await self._tasks.close()
        await self._api.close()
        await self._events.put(None)

    def _watch_one(self, found: Found) -> None:
        self._tasks.start(f"watch {found.name}", self._report_end(found))

    async def _report_end(self, found: Found) -> None:
        backoff = Backoff(longest=_LONGEST_PAUSE_SECONDS)
        failures = LoggedBackoff(
            _log, "the end of a container is not known", longest=_LONGEST_PAUSE_SECONDS, container=found.name
        )
        while True:
            try:
                await self._api.until_stopped(found.name)
                there = [
                    one for one in await self._containers.of(found.allocation_id) if one.rank == found.rank
                ]
                report = await self._containers.report(there[0]) if there else _gone(found)
            except Exception as failure:  # noqa: BLE001 - a defect must not leave its end untold
                await asyncio.sleep(failures.failed(failure))
                continue
            failures.succeeded()
            if report.state is ContainerState.ENDED:
                await self._events.put(report)
                return
            await asyncio.sleep(backoff.failed())

    def _lock(self, name: str) -> asyncio.Lock:
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = asyncio.Lock()
        return lock

    async def _request(self, spec: AllocationSpec) -> ContainerRequest:
        async with self._lock("runtime"):
            if not self._runtime:
                folder = await asyncio.to_thread(self._terms.make_runtime)
                self._runtime = str(folder)
                await self._remove_runtimes(folder)
        return ContainerRequest(
            spec=spec,
            labels=self._containers.labels(spec.allocation_id),
            engine=self._options,
            pool=self._pool_options[spec.pool or self._pools[0].name],
            runtime=self._runtime,
        )

    async def _remove_runtimes(self, folder: Path) -> None:
        """Removes the runtimes of earlier versions; what hinders that must not hinder a launch."""
        if self._terms.remove_runtimes is None:
            return
        try:
            used = await self._containers.mounted()
            await asyncio.to_thread(self._terms.remove_runtimes, folder, used=used)
        except (ResoluteError, OSError) as failure:
            _log.warning("runtimes of earlier versions are left", folder=str(folder), reason=str(failure))

    def _order(self, spec: AllocationSpec, rank: int, address: str) -> LaunchOrder:
        pool = next(one for one in self._pools if one.name == (spec.pool or self._pools[0].name))
        kind = pool.slots[0].kind.value if pool.slots and spec.placements[rank] else "cpu"
        return LaunchOrder(
            allocation_id=spec.allocation_id,
            container_rank=rank,
            master=self._options.services_address or spec.address,
            tls=self._terms.tls,
            token=spec.token,
            slot_ids=spec.placements[rank],
            slot_kind=kind,
            # CDI shows a container its own GPUs alone, numbered from 0.
            devices=tuple(map(str, range(len(spec.placements[rank])))) if kind == "gpu" else (),
            agent_id=socket.gethostname(),
            bind_address=address or "127.0.0.1",
            python="",
            lease_patience_seconds=self._terms.outage_timeout,
            log_wait_seconds=self._terms.log_wait,
        )


def _pool(name: str, options: ContainerPoolOptions) -> Pool:
    gpus = tuple(Slot(number, SlotKind.GPU, device) for number, device in enumerate(options.gpus))
    slots = gpus or tuple(Slot(number, SlotKind.CPU) for number in range(options.slots or 1))
    size = options.slots_per_node or len(slots)
    placed = tuple(replace(slot, node=slot.id // size) for slot in slots)
    return Pool(name=name, slots=placed, effective_fields=EFFECTIVE_FIELDS)


def _gone(found: Found) -> ContainerReport:
    return ContainerReport(
        allocation_id=found.allocation_id,
        container_rank=found.rank,
        state=ContainerState.ENDED,
        reason="somebody removed the container",
    )
