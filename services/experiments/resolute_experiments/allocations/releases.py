"""Releases at one engine: of settled runs, after their remaining data was sent."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from resolute.errors import NotFoundError, UnavailableError
from resolute_engines.kit.attempts import try_each
from resolute_engines.protocol import DeliversLines, HasBacklog
from resolute_experiments.allocations.contact import EngineContact
from resolute_experiments.allocations.leases import Leases
from resolute_experiments.allocations.run_spans import RunSpans
from resolute_experiments.allocations.run_specs import RunSpecs
from resolute_experiments.store import runs
from resolute_serving.database.engine import Database

_log = structlog.get_logger("fleet")


class Releases:
    """Has an engine forget runs that were settled, once what they left was sent.

    Args:
        contact: The engine.
        database: Has the runs.
        specs: What the engine is given of runs.
        leases: Receives which runs were settled.
        spans: Receives what runs go through.
    """

    def __init__(
        self,
        contact: EngineContact,
        database: Database,
        *,
        specs: RunSpecs,
        leases: Leases,
        spans: RunSpans,
    ) -> None:
        self._contact = contact
        self._database = database
        self._specs = specs
        self._leases = leases
        self._spans = spans
        self._unreleased: dict[str, runs.Run] = {}
        """Settled runs whose release the engine has not taken yet."""
        self._recovered = False

    async def release(self, run: runs.Run) -> None:
        """Lets the engine forget a run that was settled, once what it left was sent; later, if it is away."""
        self._leases.settled(run.allocation_id)
        token = await self._specs.token(run)
        try:
            await self._contact.ask(self._contact.engine.release(run.allocation_id, token=token))
        except UnavailableError:
            self._unreleased[run.allocation_id] = run
        else:
            self._unreleased.pop(run.allocation_id, None)
            if self._spans.wanted:
                self._spans.settled(await self._database.read(lambda c: runs.get(c, run.allocation_id)))

    async def release_again(self) -> None:
        """Releases what could not be released while the engine was away."""
        await try_each(self.release, list(self._unreleased.values()))

    async def release_leftovers(self) -> None:
        """Releases, once after a start, what was settled in the last moment of an earlier life."""
        if not self._recovered:
            left = await self._contact.ask(self._contact.engine.leftovers())
            await try_each(self._release_leftover, left)
            self._recovered = True

    async def _release_leftover(self, allocation_id: str) -> None:
        try:
            run = await self._database.read(lambda c: runs.get(c, allocation_id))
        except NotFoundError:
            _log.warning(
                "the engine has an allocation of a run that does not exist", allocation=allocation_id
            )
            return
        if run.ended:
            await self.release(run)

    async def deliver_lines(self, ended: Sequence[runs.Run]) -> None:
        """Sends, for a bounded time, the lines that ended runs left, if the engine does that."""
        engine = self._contact.engine
        if not isinstance(engine, DeliversLines):
            return
        tokens = {run.allocation_id: await self._specs.token(run) for run in ended}
        try:
            arrived = await self._contact.ask(engine.deliver_lines(tokens))
        except UnavailableError:
            arrived = False
        if not arrived:
            _log.warning("runs end before all of their lines have arrived", allocations=sorted(tokens))

    async def unreported(self) -> Sequence[str]:
        """Names every allocation of which reports wait that have not arrived.

        Raises:
            UnavailableError: After a start the engine was not yet asked what is left of earlier runs.
        """
        if not self._recovered:
            raise UnavailableError(
                f"engine {self._contact.name} was not asked yet what it has of earlier runs"
            )
        engine = self._contact.engine
        waiting = await engine.unreported() if isinstance(engine, HasBacklog) else ()
        return sorted({*self._unreleased, *waiting})

    async def backlog_seconds(self) -> float:
        """For how long reports or lines of some run have waited without any of them arriving."""
        engine = self._contact.engine
        return await engine.backlog_seconds() if isinstance(engine, HasBacklog) else 0.0
