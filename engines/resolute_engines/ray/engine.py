"""The engine ``ray``: a placement group for each allocation, an actor for each of its containers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from resolute.contracts.distribution import version
from resolute.contracts.run.shim_files import KILL, STOP
from resolute.errors import ResoluteError, UnavailableError
from resolute_engines.environment import SupervisorTerms
from resolute_engines.kit.installation import CHECK, missing_on
from resolute_engines.kit.late_kills import LateKills
from resolute_engines.kit.polling import Polling
from resolute_engines.kit.releases import LeftoverContainers, Releases
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
from resolute_engines.ray import states
from resolute_engines.ray.client import Driver
from resolute_engines.ray.settings import RayPoolOptions
from resolute_engines.ray.unsupported_fields import REQUIREMENTS, UNSUPPORTED_FIELDS

_SHIMS_SECONDS = 5.0
"""How long shims may take to end what they keep before Ray is asked to."""
_SHIMS_POLL_SECONDS = 0.25
_LOOKS_A_CAPACITY = 10
"""How many looks at the runs go by between two at the nodes."""
_NODES_SECONDS = 60.0
"""How long a check may wait for nodes."""
_CHECK_SECONDS = 120.0
"""How long it may take in all, the start of the driver included."""
_log = structlog.get_logger("ray")


@dataclass(frozen=True, slots=True, kw_only=True)
class RayNodes:
    """The paths and the interpreter on Ray's nodes."""

    python: str = ""
    """Interpreter of supervisors; empty for that of Ray's workers."""
    directory: str = ""
    """Where run directories lie; empty for a node's directory for temporary files."""


class RayEngine:
    """Runs allocations as actors of one Ray cluster.

    Args:
        driver: The Ray driver, which is closed with the engine.
        pools: The settings of each pool, by name.
        terms: Parameters for every supervisor.
        nodes: The paths and the interpreter on Ray's nodes.
        poll_seconds: Seconds between two polls of the runs.
    """

    prompt = False

    def __init__(
        self,
        driver: Driver,
        *,
        pools: Mapping[str, RayPoolOptions],
        terms: SupervisorTerms,
        nodes: RayNodes,
        poll_seconds: float = 1.0,
    ) -> None:
        self._driver = driver
        self._settings = dict(pools)
        self._polling = Polling(
            {name: _pool(name, settings, nodes=()) for name, settings in pools.items()},
            look_at_runs=self._look_at_runs,
            look_at_nodes=self._look_at_nodes,
            seconds=poll_seconds,
            looks_a_capacity=_LOOKS_A_CAPACITY,
        )
        self._terms = terms
        self._nodes = nodes
        self._watched = WatchedAllocations()
        """What was last reported of each container of the allocations that have not ended."""
        self._late_kills = LateKills("ray", self.kill)
        self.backlog = Releases(
            "ray",
            self,
            outage_timeout=terms.outage_timeout,
            log_wait=terms.log_wait,
            forget=self._watched.remove,
        )

    def pools(self) -> Sequence[Pool]:
        """Its pools, with the slots that Ray's nodes had at the last look."""
        return self._polling.pools

    async def launch(self, spec: AllocationSpec) -> None:
        """Hands the group and the actors of an allocation to Ray; what it has, or had, is left alone.

        Raises:
            UnavailableError: Ray does not answer; whether it has them is not known.
        """
        pool = self._settings[spec.pool]
        await self._driver.call(
            "launch",
            allocation=spec.allocation_id,
            bundles=[pool.bundle(len(slots)) for slots in spec.placements],
            orders=[
                json.dumps(self._terms.order(spec, rank, slot_kind=pool.slot_type).to_json())
                for rank in range(len(spec.placements))
            ],
            python=self._nodes.python,
            directory=self._nodes.directory,
        )
        self._watched.add(spec.allocation_id, containers=len(spec.placements))

    async def inspect(self, allocation_id: str) -> Sequence[ContainerReport]:
        """Tells the state of every container by rank, and watches those that have not ended."""
        if allocation_id in self.backlog:
            return []
        reports = (await self._look([allocation_id]))[allocation_id]
        self._watched.add_unless_ended(allocation_id, reports)
        return reports

    async def _look(self, allocation_ids: Sequence[str]) -> dict[str, list[ContainerReport]]:
        seen = await self._driver.call("look", allocations=allocation_ids)
        return {name: states.reports_of(name, one) if one else [] for name, one in seen.items()}

    async def leftover_containers(self, allocation_id: str) -> LeftoverContainers | None:
        """What is left of an allocation with Ray.

        Raises:
            UnavailableError: Ray does not answer.
        """
        seen = (await self._driver.call("look", allocations=[allocation_id]))[allocation_id]
        return states.leftover_containers_of(seen) if seen else None

    async def stop(self, allocation_id: str, *, grace: float) -> None:
        """Asks the shims of an allocation to have it exit; what waits is taken out of the queue."""
        states_now = {report.state for report in (await self._look([allocation_id]))[allocation_id]}
        if ContainerState.RUNNING in states_now:
            await self._driver.call("ask", allocation=allocation_id, word=STOP)
            self._late_kills.plan(allocation_id, grace=grace)
        elif states_now - {ContainerState.ENDED}:
            await self._driver.call("end", allocation=allocation_id, withdrawn=True)

    async def kill(self, allocation_id: str) -> None:
        """Has the shims of an allocation end it; after them its actors are ended."""
        clock = asyncio.get_running_loop().time
        deadline, asked = clock() + _SHIMS_SECONDS, False
        while True:
            states_now = {report.state for report in (await self._look([allocation_id]))[allocation_id]}
            if not states_now - {ContainerState.ENDED}:
                return
            if ContainerState.RUNNING not in states_now or clock() > deadline:
                break
            if not asked:
                await self._driver.call("ask", allocation=allocation_id, word=KILL)
                asked = True
            await asyncio.sleep(_SHIMS_POLL_SECONDS)
        await self._driver.call("end", allocation=allocation_id, withdrawn=False)

    async def release(self, allocation_id: str, *, token: str = "") -> None:
        """Forgets an allocation; once its shims have sent what it left, all of it is removed.

        A shim sends with the last token of its run: it is given no other.
        """
        self._late_kills.drop(allocation_id)
        self._watched.remove(allocation_id)
        self.backlog.release(allocation_id)

    async def delete(self, allocation_id: str) -> None:
        """Removes all of an allocation."""
        await self._driver.call("remove", allocation=allocation_id)

    async def leftovers(self) -> Sequence[str]:
        """Names every allocation of this cluster of which Ray has something."""
        return sorted(name for name in await self._driver.call("names") if name not in self.backlog)

    async def watch(self) -> AsyncIterator[EngineEvent]:
        """Tells of containers that began or ended, and of nodes that came or went, until ``close``.

        Raises:
            UnavailableError: Ray does not answer; to be called again.
        """
        try:
            async for event in self._polling.events():
                yield event
        except UnavailableError:
            # A question that the driver was closed under has no answer, and is none of Ray's failures.
            if not self._polling.closed:
                raise

    async def _look_at_runs(self) -> list[ContainerReport]:
        names = self._watched.names()
        seen = await self._look(names) if names else {}
        return [
            change
            for allocation_id, reports in seen.items()
            for change in self._watched.changes(allocation_id, reports)
        ]

    async def _look_at_nodes(self) -> dict[str, Pool]:
        nodes = [node["resources"] for node in await self._driver.call("nodes")]
        await self._driver.call("keep_leftovers", python=self._nodes.python, directory=self._nodes.directory)
        pools = {}
        for name, settings in self._settings.items():
            pools[name] = _pool(name, settings, nodes=nodes)
        return pools

    async def check_nodes(self) -> Sequence[NodeCheck]:
        """Runs a task of seconds on every node: whether it has Resolute. Nodes share no storage."""
        page = "see docs/ray.md"
        place = self._nodes.python or "the interpreter of Ray's workers"
        try:
            printed: dict[str, str] = await self._driver.call(
                "complaints",
                deadline_seconds=_CHECK_SECONDS,
                python=self._nodes.python,
                arguments=["-c", CHECK, version()],
                seconds=_NODES_SECONDS,
            )
        except ResoluteError as error:
            return [NodeCheck(usable=False, detail=str(error), remedy=page)]
        if failed := {node: text for node, text in printed.items() if text}:
            return [missing_on(failed, nodes=len(printed), place=place, page=page)]
        detail = f"all {len(printed)} have Resolute at {place}"
        return [NodeCheck(usable=True, detail=detail)]

    async def close(self) -> None:
        """Ends the watching. Actors continue."""
        self._polling.close()
        await self._late_kills.close()
        await self.backlog.close()
        await self._driver.close()


def _pool(name: str, settings: RayPoolOptions, *, nodes: Sequence[Mapping[str, Any]]) -> Pool:
    kind, size, others = SlotKind(settings.slot_type), settings.slots_per_node, settings.resources or {}
    fitting = [node for node in nodes if all(node.get(each, 0) >= wanted for each, wanted in others.items())]
    counts = [count for node in fitting if (count := int(node.get(settings.slot_resource, 0)))]
    places = [node for node, count in enumerate(counts) for _ in range(count)]
    return Pool(
        name=name,
        placement=Placement.ENGINE,
        slots=tuple(Slot(number, kind, node=node) for number, node in enumerate(places)),
        slots_per_node=size,
        most_slots=settings.max_slots or (sum(count // size for count in counts) * size or None),
        taken_out_by=(
            "`ray drain-node --node-id ID --reason DRAIN_NODE_REASON_PREEMPTION --reason-message WHY`, "
            "and back by `ray start` on it"
        ),
        most_allocations=settings.most_allocations,
        unsupported_fields=UNSUPPORTED_FIELDS,
        requirements=REQUIREMENTS,
    )
