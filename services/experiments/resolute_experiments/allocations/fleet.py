"""All engines of the cluster: each run belongs to the engine of its pool, and no engine waits for another."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import structlog

from resolute.errors import UnavailableError
from resolute_engines.protocol import Placement, Pool
from resolute_experiments.admission.pools import PoolsOffered, PoolTerms
from resolute_experiments.allocations.engine_runs import EngineRuns
from resolute_experiments.allocations.layout import by_node
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.runs import Run

_CHOICE = "resources.resource_pool"
_log = structlog.get_logger("fleet")


class Fleet:
    """The engines and their pools.

    Args:
        engines: The engines; one at least.
        default_pool: Where experiments run that name no pool.
        pools_are_named: Whether the settings name the pools.
    """

    def __init__(
        self, engines: Sequence[EngineRuns], *, default_pool: str, pools_are_named: bool = False
    ) -> None:
        self._engines = engines
        self.pools_are_named = pools_are_named
        """Whether the settings name the pools. If not, there is one, whatever configs call it."""
        self.default_pool = default_pool
        """Where experiments run that name no pool."""

    def pools(self) -> Sequence[Pool]:
        """Every pool, as it is now: the default one first."""
        found = [pool for each in self._engines for pool in each.engine.pools()]
        return sorted(found, key=lambda pool: pool.name != self.default_pool)

    def pool(self, name: str) -> Pool:
        """One pool, by the name that experiments have for it.

        Raises:
            UnavailableError: The settings have no such pool.
        """
        return next(
            pool for pool in self._engine(name).engine.pools() if pool.name == (name or self.default_pool)
        )

    def names_of(self, pool: Pool) -> Sequence[str]:
        """The names that experiments have for a pool; none where there is one for all of them."""
        if not self.pools_are_named:
            return ()
        return (pool.name, "") if pool.name == self.default_pool else (pool.name,)

    @property
    def slot_count(self) -> int:
        """Number of slots of all pools, as far as they are known."""
        return sum(len(pool.slots) for pool in self.pools())

    def offered(self) -> PoolsOffered:
        """What configs may ask of the pools, as they are now."""
        named = self.pools_are_named
        return PoolsOffered(pools=tuple(terms_of(pool, named=named) for pool in self.pools()), named=named)

    def problems(self) -> list[str]:
        """Says which engines do not answer."""
        return [each.contact.problem for each in self._engines if each.contact.problem]

    def wait_reason(self, allocation_id: str) -> str:
        """Says why an engine has not begun an allocation that it has; empty where nothing is known."""
        return next(filter(None, (each.launches.wait_reason(allocation_id) for each in self._engines)), "")

    async def launch_pending(self) -> None:
        """Starts every run that was placed and does not run yet.

        Engines that take longer do so in their own tasks: the scheduler does not wait for them.

        Raises:
            Exception: What failed first of the engines that are prompt.
        """
        for each in self._engines:
            if not each.engine.prompt:
                each.wake()
        for each in self._engines:
            if each.engine.prompt:
                await each.launches.launch_pending()

    async def recover(self) -> None:
        """Finds out, after a start of this service, what became of every run of the prompt engines.

        The others begin with that in their own tasks.
        """
        for each in self._engines:
            if each.engine.prompt:
                await each.recover()

    async def run(self) -> None:
        """Watches all engines until the service stops."""
        tasks = [
            asyncio.create_task(each.run(), name=f"engine-{each.contact.name}") for each in self._engines
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def unreported(self, experiment: Experiment) -> Sequence[str]:
        """Names the allocations of the experiment's engine of which reports have not all arrived.

        Raises:
            UnavailableError: Its engine does not answer, so that nobody knows.
        """
        return await self._engine(experiment.resource_pool).releases.unreported()

    async def backlog_seconds(self) -> float:
        """For how long reports or lines of some run have waited, as far as the engines answer."""
        answers = await asyncio.gather(
            *(each.releases.backlog_seconds() for each in self._engines), return_exceptions=True
        )
        return max((answer for answer in answers if isinstance(answer, float)), default=0.0)

    async def kill(self, run: Run) -> None:
        """Ends every process of a run at once, if its engine answers."""
        try:
            await self._engine(run.resource_pool).contact.kill(run.allocation_id)
        except UnavailableError as failure:
            _log.warning("a run could not be ended", allocation=run.allocation_id, reason=str(failure))

    async def deliver_lines(self, ended: Sequence[Run]) -> None:
        """Sends, for a bounded time, the lines that ended runs left."""
        by_pool: defaultdict[str, list[Run]] = defaultdict(list)
        for run in ended:
            by_pool[run.resource_pool].append(run)
        for pool, found in by_pool.items():
            await self._engine(pool).releases.deliver_lines(found)

    async def release(self, run: Run) -> None:
        """Lets the engine forget a run that was settled, once what it left was sent."""
        await self._engine(run.resource_pool).releases.release(run)

    def _engine(self, pool: str) -> EngineRuns:
        """The engine that has a pool.

        Raises:
            UnavailableError: The settings have no such pool.
        """
        name = pool or self.default_pool
        for each in self._engines:
            if any(one.name == name for one in each.engine.pools()):
                return each
        raise UnavailableError(
            f"the settings have no resource pool {name!r}: add it again until its experiments have ended"
        )


def terms_of(pool: Pool, *, named: bool) -> PoolTerms:
    """What configs may ask of a pool.

    Args:
        pool: The pool, as it is now.
        named: Whether the settings name the pools, so that configs choose among them.
    """
    if pool.placement is Placement.ENGINE:
        most, largest = pool.most_slots, pool.slots_per_node
    else:
        most, largest = len(pool.slots), max(map(len, by_node(pool.slots)), default=0)
    return PoolTerms(
        name=pool.name,
        most_slots=most,
        largest_node=largest,
        host_access=pool.host_access,
        supported_fields=pool.supported_fields | ({_CHOICE} if named else set()),
        unsupported_fields=pool.unsupported_fields,
        requirements=pool.requirements,
        warnings=pool.warnings,
    )
