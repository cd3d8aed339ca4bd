"""The fleet: all engines of the cluster. A run belongs to its pool's engine; no engine delays another."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import structlog

from resolute.contracts.tasks import end_tasks
from resolute.errors import UnavailableError
from resolute_engines.kit.attempts import try_each
from resolute_experiments.allocations.engine_runs import EngineRuns
from resolute_experiments.allocations.pools import Pools
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.runs import Run

_log = structlog.get_logger("fleet")


class Fleet:
    """The engines and their pools.

    Args:
        engines: The engines; at least one.
        default_pool: Pool of experiments that name none.
        pools_are_named: Whether the settings name the pools.
    """

    def __init__(
        self, engines: Sequence[EngineRuns], *, default_pool: str, pools_are_named: bool = False
    ) -> None:
        self._engines = engines
        self.pools = Pools(engines, default=default_pool, named=pools_are_named)
        """Their pools."""

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

    async def lose_local(self) -> None:
        """Notes that the runs of this machine's own pools are lost, because another machine has them."""
        for each in self._engines:
            if any(pool.runs_here for pool in each.engine.pools()):
                await each.launches.lose_all()

    async def run(self) -> None:
        """Watches all engines until the service stops."""
        tasks = [
            asyncio.create_task(each.run(), name=f"engine-{each.contact.name}") for each in self._engines
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            await end_tasks(*tasks)
            # Not in the tasks: one that is cancelled while it closes its engine leaves that half closed.
            await try_each(lambda each: each.engine.close(), self._engines)

    async def unreported(self, experiment: Experiment) -> Sequence[str]:
        """Names the allocations of the experiment's engine of which reports have not all arrived.

        Raises:
            UnavailableError: Its engine does not answer.
        """
        return await self.pools.engine_of(experiment.resource_pool).releases.unreported()

    async def backlog_seconds(self) -> float:
        """For how long reports or lines of some run have waited, as far as the engines answer."""
        answers = await asyncio.gather(
            *(each.releases.backlog_seconds() for each in self._engines), return_exceptions=True
        )
        return max((answer for answer in answers if isinstance(answer, float)), default=0.0)

    async def kill(self, run: Run) -> None:
        """Ends every process of a run at once, if its engine answers."""
        try:
            await self.pools.engine_of(run.resource_pool).contact.kill(run.allocation_id)
        except UnavailableError as failure:
            _log.warning("a run could not be ended", allocation=run.allocation_id, reason=str(failure))

    async def deliver_lines(self, ended: Sequence[Run]) -> None:
        """Sends, for a bounded time, the lines that ended runs left."""
        by_pool: defaultdict[str, list[Run]] = defaultdict(list)
        for run in ended:
            by_pool[run.resource_pool].append(run)
        for pool, allocation_ids in by_pool.items():
            await self.pools.engine_of(pool).releases.deliver_lines(allocation_ids)

    async def release(self, run: Run) -> None:
        """Lets the engine forget a run that was settled, once what it left was sent."""
        await self.pools.engine_of(run.resource_pool).releases.release(run)
