"""The engine ``kubernetes``: it runs each part of an allocation in a Pod."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import structlog

from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.run.shim_files import KILL, STOP
from resolute.contracts.tasks import end_tasks
from resolute.errors import (
    FailedPreconditionError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnavailableError,
)
from resolute_engines.environment import SupervisorTerms
from resolute_engines.kit.late_kills import LateKills
from resolute_engines.kit.named_tasks import NamedTasks
from resolute_engines.kit.releases import LeftoverContainers, Releases
from resolute_engines.kit.shared_attempt import SharedAttempt
from resolute_engines.kubernetes import states
from resolute_engines.kubernetes.client import KubernetesClient, Submitted
from resolute_engines.kubernetes.connection import READING, KubernetesApi
from resolute_engines.kubernetes.pods import Pod, PodState
from resolute_engines.kubernetes.request import (
    ALLOCATION_LABEL,
    CLUSTER_LABEL,
    PodRequest,
    group_name,
)
from resolute_engines.kubernetes.settings import KubernetesEngineOptions, KubernetesPoolOptions
from resolute_engines.kubernetes.unsupported_fields import (
    SUPPORTED_FIELDS,
    UnmountedStorage,
    requirements,
    unsupported_fields,
)
from resolute_engines.protocol import (
    AllocationSpec,
    ContainerReport,
    ContainerState,
    EngineEvent,
    EvictionNotice,
    Placement,
    Pool,
)

T = TypeVar("T")
_CONNECT_SECONDS = 30.0
"""How long credentials may take to be read before a request fails as if Kubernetes did not answer."""
_SHIMS_SECONDS = 5.0
"""How long shims may take to end what they keep before Kubernetes is asked to."""
_POLL_SECONDS = 0.25
_HOPELESS = ("ErrImageNeverPull", "InvalidImageName")
"""Reasons that do not pass, however long one waits."""
_log = structlog.get_logger("kubernetes")


class KubernetesEngine:
    """Runs allocations as Pods.

    Args:
        connect: Opens a connection to the API server.
        options: The engine's settings.
        pools: The settings of its pools, by name.
        terms: Parameters for every supervisor.
        cluster_id: UUID of the cluster, which is a label of its Pods.
    """

    prompt = False

    def __init__(
        self,
        connect: Callable[[], Awaitable[KubernetesApi]],
        *,
        options: KubernetesEngineOptions,
        pools: Mapping[str, KubernetesPoolOptions],
        terms: SupervisorTerms,
        cluster_id: str,
    ) -> None:
        self._connect = connect
        self._options = options
        self._pool_options = pools
        self._terms = terms
        self._cluster_id = cluster_id
        self._selector = f"{CLUSTER_LABEL}={cluster_id}"
        self._api: KubernetesApi | None = None
        self._connecting = SharedAttempt(
            "kubernetes-connect", self._open, seconds=_CONNECT_SECONDS, late=READING
        )
        self._closed = False
        self._events: asyncio.Queue[EngineEvent | Exception | None] = asyncio.Queue()
        self._known: dict[str, Pod] = {}
        """The Pods of the cluster as the watch has reported them, by uid."""
        self._watched: dict[str, dict[int, ContainerReport]] = {}
        """What was last reported of each container of the allocations whose ends are wanted."""
        self._noticed: set[str] = set()
        """Allocations that were already asked to end, or are ended here."""
        self._withdrawn: set[str] = set()
        """Allocations that were ended before all of their Pods ran."""
        self._tasks = NamedTasks("kubernetes")
        self._late_kills = LateKills("kubernetes", self.kill)
        self._following: asyncio.Task[None] | None = None
        self.backlog = Releases(
            "kubernetes",
            self,
            outage_timeout=terms.outage_timeout,
            log_wait=terms.log_wait,
            forget=self._forget,
        )

    def pools(self) -> Sequence[Pool]:
        """Its pools, as the settings have them: what room there is Kubernetes alone knows."""
        return [
            Pool(
                name=name,
                placement=Placement.ENGINE,
                slots_per_node=pool.slots_per_node,
                most_slots=pool.max_slots,
                taken_out_by="`kubectl cordon NODE`, and back by `kubectl uncordon NODE`",
                most_allocations=pool.most_allocations,
                supported_fields=SUPPORTED_FIELDS,
                unsupported_fields=unsupported_fields(pool),
                requirements=requirements(pool, name=name),
                warnings=(UnmountedStorage(pool.additions),),
                checkpoint_directories=pool.checkpoint_directories,
            )
            for name, pool in self._pool_options.items()
        ]

    async def launch(self, spec: AllocationSpec) -> None:
        """Submits the Pods of an allocation; those that are there, or were, are left alone."""
        request = PodRequest(
            spec=spec,
            labels={CLUSTER_LABEL: self._cluster_id, ALLOCATION_LABEL: spec.allocation_id},
            engine=self._options,
            pool=self._pool_options[spec.pool],
        )
        group = request.group({rank: self._order(spec, rank) for rank in range(len(spec.placements))})
        self._watched.setdefault(spec.allocation_id, {})
        client = await self._client()
        try:
            await client.submit(group)
        except UnauthenticatedError as failure:
            raise UnavailableError(str(failure)) from failure

    async def inspect(self, allocation_id: str) -> Sequence[ContainerReport]:
        """Tells the state of every container by rank, and watches those that have not ended."""
        if allocation_id in self.backlog:
            return []
        # Before the look: what changes after it is reported.
        new = allocation_id not in self._watched
        self._watched.setdefault(allocation_id, {})
        group = await self.find(allocation_id)
        if group is None:
            if new:
                self._watched.pop(allocation_id, None)
            return []
        for pod in filter(_is_blocked, group.pods):
            # The watch may have reported it before there was a subscriber.
            self._tasks.start(f"image-timeout {pod.uid}", self._fail_after_timeout(pod))
        reports = states.reports_of(group)
        reported = self._watched.setdefault(allocation_id, {})
        for rank, report in reported.items():
            if report.state is ContainerState.ENDED and rank < len(reports):
                # One that waits in vain ended by our word alone.
                reports[rank] = report
        return reports

    async def stop(self, allocation_id: str, *, grace: float) -> None:
        """Asks the shims of an allocation to have it exit; what waits is taken out of the queue."""
        group = await self.find(allocation_id)
        if group is None or group.all_ended:
            return
        seconds, waits = max(1, int(grace)), any(pod.waits for pod in group.pods)
        runs = any(pod.state is PodState.RUNNING for pod in group.pods)
        if waits or not runs:
            self._withdrawn.add(allocation_id)
        if runs:
            await self._ask(lambda client: client.ask(group.name, STOP))
            if waits:
                await self._ask(lambda client: client.withdraw(group.name, grace_seconds=seconds))
            self._late_kills.plan(allocation_id, grace=grace)
        else:
            self._noticed.add(allocation_id)
            await self._ask(lambda client: client.end(group.name, grace_seconds=seconds, withdrawn=True))

    async def kill(self, allocation_id: str) -> None:
        """Has the shims of an allocation end it; after them its Pods are ended."""
        group = await self.find(allocation_id)
        if group is None or group.all_ended:
            return
        self._noticed.add(allocation_id)
        if any(pod.state is PodState.RUNNING for pod in group.pods):
            # Kubernetes asks before it kills, and what a run left unsent would go with its Pod.
            await self._ask(lambda client: client.ask(group.name, KILL))
            if await self._soon_ended(allocation_id):
                return
        await self._ask(lambda client: client.end(group.name, grace_seconds=1))

    async def _soon_ended(self, allocation_id: str) -> bool:
        clock = asyncio.get_running_loop().time
        deadline = clock() + _SHIMS_SECONDS
        while clock() < deadline:
            group = await self.find(allocation_id)
            if group is None or group.all_ended:
                return True
            await asyncio.sleep(_POLL_SECONDS)
        return False

    async def release(self, allocation_id: str, *, token: str = "") -> None:
        """Forgets an allocation; once its Pods have sent what it left, all of it is removed.

        A Pod sends with the last token of its run: it cannot be given another.
        """
        self._late_kills.drop(allocation_id)
        self._forget(allocation_id)
        self.backlog.release(allocation_id)

    def _forget(self, allocation_id: str) -> None:
        self._watched.pop(allocation_id, None)
        self._noticed.discard(allocation_id)
        self._withdrawn.discard(allocation_id)

    async def delete(self, allocation_id: str) -> None:
        """Removes all of an allocation."""
        await self._ask(lambda client: client.delete(group_name(allocation_id)))

    async def leftovers(self) -> Sequence[str]:
        """Names every allocation of this cluster of which Kubernetes has something."""
        groups = await self._ask(lambda client: client.groups(selector=self._selector))
        named = {labels.get(ALLOCATION_LABEL, "") for labels in groups.values()}
        return sorted(name for name in named if name not in self.backlog)

    async def watch(self) -> AsyncIterator[EngineEvent]:
        """Tells of containers that began or ended, and of Pods that must go, until ``close``.

        Raises:
            ResoluteError: Kubernetes does not answer, or refuses; to be called again.
        """
        await self._unfollow()
        if not self._closed:
            self._following = asyncio.create_task(self._follow(), name="kubernetes-watch")
        while (event := await self._events.get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield event

    async def _unfollow(self) -> None:
        """Ends the watch over Pods, if there is one."""
        following, self._following = self._following, None
        await end_tasks(following)

    async def _follow(self) -> None:
        try:
            client = await self._client()
            async for pod in client.watch(selector=self._selector, known=self._known):
                self._take(pod)
        except Exception as failure:  # noqa: BLE001 - passed on to the watcher, which watches again
            self._events.put_nowait(failure)

    def _take(self, pod: Pod) -> None:
        allocation_id = pod.labels.get(ALLOCATION_LABEL, "")
        reported = self._watched.get(allocation_id)
        if reported is None:
            return
        if pod.blocked:
            self._tasks.start(f"image-timeout {pod.uid}", self._fail_after_timeout(pod))
        report = states.report_of(pod)
        if report.lost and allocation_id in self._withdrawn:
            report = replace(report, exit=ExitRecord.withdrawn())
        self._tell(report)
        if (pod.leaving or pod.disrupted) and pod.state is PodState.RUNNING:
            self._notice(allocation_id, pod.reason or f"Kubernetes was reported to delete Pod {pod.name}")

    def _tell(self, report: ContainerReport) -> None:
        reported = self._watched.get(report.allocation_id)
        before = None if reported is None else reported.get(report.container_rank)
        ended = before is not None and before.state is ContainerState.ENDED
        if reported is not None and not ended and report != before:
            reported[report.container_rank] = report
            self._events.put_nowait(report)

    def _notice(self, allocation_id: str, reason: str) -> None:
        if allocation_id not in self._noticed:
            self._noticed.add(allocation_id)
            self._events.put_nowait(EvictionNotice(allocation_id=allocation_id, reason=reason))

    async def _fail_after_timeout(self, pod: Pod) -> None:
        hopeless = pod.reason.startswith(_HOPELESS)
        await asyncio.sleep(0 if hopeless else self._options.image_timeout)
        now = self._known.get(pod.uid, pod)
        if now.blocked:
            self._tell(states.blocked(now))

    async def close(self) -> None:
        """Ends the watching. Pods continue."""
        # A call that is still running must not open a connection that would stay open.
        self._closed = True
        await self._connecting.close()
        await self._unfollow()
        await self._late_kills.close()
        await self._tasks.close()
        await self.backlog.close()
        api, self._api = self._api, None
        if api is not None:
            await api.close()
        await self._events.put(None)

    async def find(self, allocation_id: str) -> Submitted | None:
        """What Kubernetes has of an allocation.

        Raises:
            UnavailableError: Kubernetes does not answer.
        """
        return await self._ask(lambda client: client.find(group_name(allocation_id)))

    async def leftover_containers(self, allocation_id: str) -> LeftoverContainers | None:
        """What is left of an allocation in its Pods.

        Raises:
            UnavailableError: Kubernetes does not answer.
        """
        group = await self.find(allocation_id)
        return None if group is None else states.leftover_containers_of(group)

    async def _ask(self, question: Callable[[KubernetesClient], Awaitable[T]]) -> T:
        """Asks Kubernetes; where it does not let us in, it is as if it did not answer."""
        try:
            return await question(await self._client())
        except (PermissionDeniedError, UnauthenticatedError) as failure:
            raise UnavailableError(str(failure)) from failure

    async def _client(self) -> KubernetesClient:
        if self._api is None and not self._closed:
            await self._connecting.outcome()
        if self._closed or self._api is None:
            raise UnavailableError("the service is being stopped, and makes no more calls of Kubernetes")
        return KubernetesClient(self._api, namespace=self._options.namespace)

    async def _open(self) -> None:
        try:
            self._api = await self._connect()
        except FailedPreconditionError as failure:
            raise UnavailableError(str(failure)) from failure

    def _order(self, spec: AllocationSpec, rank: int) -> LaunchOrder:
        pool, slots = self._pool_options[spec.pool], spec.placements[rank]
        gpus = pool.slot_type == "gpu" and bool(slots)
        return replace(
            self._terms.order(spec, rank, slot_kind=pool.slot_type),
            # A Pod sees its own GPUs alone, numbered from 0.
            devices=tuple(map(str, range(len(slots)))) if gpus else (),
        )


def _is_blocked(pod: Pod) -> bool:
    return pod.blocked
