"""Releases settled runs from one engine, after their remaining data was sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from resolute.contracts.clock import Clock
from resolute.errors import FailedPreconditionError, NotFoundError, ResoluteError, UnavailableError
from resolute_engines.kit.attempts import try_each
from resolute_engines.protocol import HasBacklog, KeepsRunFiles, RunFile, RunFiles
from resolute_experiments.allocations import holds
from resolute_experiments.allocations.contact import EngineContact
from resolute_experiments.allocations.leases import Leases
from resolute_experiments.allocations.run_spans import RunSpans
from resolute_experiments.allocations.run_specs import RunSpecs
from resolute_experiments.store import runs
from resolute_serving.database.engine import Database

_log = structlog.get_logger("fleet")


class Releases:
    """Removes settled runs from an engine, once their remaining data was sent.

    Args:
        contact: The engine.
        database: This service's database.
        specs: Builds the specs of runs for the engine.
        leases: The leases, from which settled runs are removed.
        spans: Receives the phases of runs.
        clock: Measures how long files are held.
        wake: Schedules an early call of ``release_again``.
    """

    def __init__(
        self,
        contact: EngineContact,
        database: Database,
        *,
        specs: RunSpecs,
        leases: Leases,
        spans: RunSpans,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self._contact = contact
        self._database = database
        self._specs = specs
        self._leases = leases
        self._spans = spans
        self._clock = clock
        self._wake = wake
        self._unreleased: dict[str, runs.Run] = {}
        """Settled runs whose release the engine has not taken yet."""
        self._held: dict[str, runs.Run] = {}
        """Settled runs whose files are held."""
        self._recovered = False

    async def release(self, run: runs.Run) -> None:
        """Lets the engine forget a run that was settled, once what it left was sent; later, if it is away.

        A run whose files are held is forgotten when that time is over. To look whether they may be takes
        seconds with some engines, which the next run of its trial does not wait for.
        """
        self._leases.settled(run.allocation_id)
        if isinstance(self._contact.engine, KeepsRunFiles) and await self._hold(run) is not None:
            self._unreleased[run.allocation_id] = run
            self._wake()
        else:
            await self._release(run)

    async def _release(self, run: runs.Run) -> None:
        try:
            held = await self._holds(run)
            if not held:
                token = await self._specs.token(run)
                await self._contact.ask(self._contact.engine.release(run.allocation_id, token=token))
        except UnavailableError:
            self._unreleased[run.allocation_id] = run
            return
        self._unreleased.pop(run.allocation_id, None)
        if held:
            self._held[run.allocation_id] = run
            return
        self._held.pop(run.allocation_id, None)
        if self._spans.wanted:
            self._spans.settled(await self._database.read(lambda c: runs.get(c, run.allocation_id)))

    async def release_again(self) -> None:
        """Releases what could not be released while the engine was away, and what was held long enough."""
        await try_each(self._release, (self._unreleased | self._held).values())

    async def files(self, run: runs.Run) -> Sequence[RunFile]:
        """Lists the files that are held of a run.

        Raises:
            FailedPreconditionError: None are.
        """
        held = await self._files(run)
        return await self._contact.ask(held.list_files(run.allocation_id))

    async def read_file(self, run: runs.Run, path: str, *, offset: int, size: int) -> bytes:
        """Reads a part of a file that is held of a run.

        Raises:
            FailedPreconditionError: None are.
            NotFoundError: There is no such file.
        """
        held = await self._files(run)
        return await self._contact.ask(held.read_file(run.allocation_id, path, offset=offset, size=size))

    async def _files(self, run: runs.Run) -> RunFiles:
        if run.allocation_id in self._unreleased:
            # It was settled a moment ago, or its engine was away.
            await self._release(run)
        engine = self._contact.engine
        if run.allocation_id not in self._held or not isinstance(engine, KeepsRunFiles):
            raise _not_held(run)
        return engine.run_files

    async def _hold(self, run: runs.Run) -> holds.Hold | None:
        return await self._database.read(lambda c: holds.of_run(c, run.allocation_id))

    async def _holds(self, run: runs.Run) -> bool:
        """Whether the files of a settled run stay for now; those that take too much space do not."""
        engine = self._contact.engine
        if not isinstance(engine, KeepsRunFiles):
            return False
        hold = await self._hold(run)
        if hold is None:
            return False
        if hold.until > self._clock.time():
            if run.allocation_id in self._held:
                return True
            try:
                files = await self._contact.ask(engine.run_files.list_files(run.allocation_id))
            except UnavailableError:
                raise
            except ResoluteError as failure:
                _log.warning(
                    "files of a run cannot be held", allocation=run.allocation_id, reason=str(failure)
                )
            else:
                size = sum(file.size for file in files)
                if size <= hold.most_bytes:
                    return True
                _log.warning(
                    "files of a run take too much to be held", allocation=run.allocation_id, bytes=size
                )
        await self._database.write(lambda c: holds.end(c, run.allocation_id))
        return False

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
        if not isinstance(engine, HasBacklog):
            return
        tokens = {run.allocation_id: await self._specs.token(run) for run in ended}
        try:
            arrived = await self._contact.ask(engine.backlog.deliver_lines(tokens))
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
        waiting = await engine.backlog.unreported() if isinstance(engine, HasBacklog) else ()
        return sorted({*self._unreleased, *waiting})

    async def backlog_seconds(self) -> float:
        """For how long reports or lines of some run have waited without any of them arriving."""
        engine = self._contact.engine
        return await engine.backlog.seconds() if isinstance(engine, HasBacklog) else 0.0


def _not_held(run: runs.Run) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"the files of {run.label} are not held: on_failure.hold in the config holds those of runs that fail"
    )
