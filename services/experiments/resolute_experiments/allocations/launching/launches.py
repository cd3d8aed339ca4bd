"""Launches every placed run of one engine that has not started."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog

from resolute.errors import QuotaError, UnavailableError
from resolute_engines.kit.attempts import try_each
from resolute_engines.protocol import ContainerState
from resolute_experiments.allocations.contact import EngineContact
from resolute_experiments.allocations.launching.failing import FailingLaunches
from resolute_experiments.allocations.launching.turned_away import TurnedAway
from resolute_experiments.allocations.run_spans import RunSpans
from resolute_experiments.allocations.run_specs import RunSpecs
from resolute_experiments.allocations.watching.container_ends import ContainerEnds
from resolute_experiments.allocations.watching.waiting_containers import WaitingContainers
from resolute_experiments.allocations.watching.watch import Watch
from resolute_experiments.context import ServiceContext
from resolute_experiments.store import runs

_LAUNCHES_AT_ONCE = 8
"""How many launches an engine is asked for at a time that takes long to answer."""

_log = structlog.get_logger("fleet")


class Launches:
    """Launches the runs of an engine's pools, each once.

    Args:
        contact: The engine.
        core: The service's database, clock and notifier.
        specs: Builds the specs of runs for the engine.
        watch: Receives the reports of the engine.
        ends: Records the ends of containers.
        waiting: The containers that have not started.
        spans: Receives the phases of runs.
    """

    def __init__(
        self,
        contact: EngineContact,
        core: ServiceContext,
        *,
        specs: RunSpecs,
        watch: Watch,
        ends: ContainerEnds,
        waiting: WaitingContainers,
        spans: RunSpans,
    ) -> None:
        self._contact = contact
        self._core = core
        self._specs = specs
        self._watch = watch
        self._ends = ends
        self._waiting = waiting
        self._spans = spans
        self._lock = asyncio.Lock()
        self._launched: set[str] = set()
        """Allocations that this process has launched, or found launched. Only runs that have not ended."""
        self._turned_away = TurnedAway()
        self._failing = FailingLaunches(contact.name, core.clock)

    def __contains__(self, allocation_id: str) -> bool:
        """Whether a live run was launched, or found launched."""
        return allocation_id in self._launched

    def wait_reason(self, allocation_id: str) -> str:
        """Says why the engine has not begun an allocation; empty where nothing is known."""
        sources = (self._waiting, self._turned_away, self._failing)
        return next(filter(None, (source.reason(allocation_id) for source in sources)), "")

    async def launch_pending(self) -> None:
        """Starts every run of its pools that was placed and does not run yet.

        A run that cannot be started ends as a failure that says why. If something else fails, such as the
        database or the way to the engine, the other runs are started all the same, and the next call tries
        again; what neither of them explains is tried again for a bounded time.

        Raises:
            Exception: What failed first.
        """
        engine = self._contact.engine
        async with self._lock:
            live = {
                run.allocation_id: run
                for run in await self._specs.live([pool.name for pool in engine.pools()])
            }
            self._launched &= live.keys()
            self._waiting.keep(live.keys())
            self._failing.keep(live.keys())
            self._turned_away.ask_again(live.keys())
            pending = [run for name, run in live.items() if name not in self._launched]
            new = [run for run in pending if run not in self._turned_away]
            again = [run for run in pending if run in self._turned_away]
            launch = partial(try_each, self._launch_or_keep)
            steps: Sequence[Callable[[], Awaitable[None]]] = (
                partial(launch, new, at_once=1 if engine.prompt else _LAUNCHES_AT_ONCE),
                # The first that is turned away again answers for the rest of its pool.
                partial(launch, again, at_once=1),
            )
            await try_each(lambda step: step(), steps, at_once=1)

    async def lose_all(self) -> None:
        """Notes that every run of its pools that has not ended is lost. Nothing was launched yet."""
        for run in await self._specs.live([pool.name for pool in self._contact.engine.pools()]):
            containers = await self._core.database.read(
                partial(runs.containers_of, allocation_id=run.allocation_id)
            )
            await self._ends.note_all_lost(run, containers)

    async def _launch_or_keep(self, run: runs.Run) -> None:
        """Launches a run, unless its pool takes no more now."""
        if run.signal_deadline is None and self._turned_away.would_be_again(run):
            return
        try:
            await self._launch_unless_running(run)
        except QuotaError as full:
            self._turned_away.add(run, str(full))
            return
        except UnavailableError:
            raise
        except Exception as defect:
            if not await self._give_up(run, defect):
                raise
        self._failing.remove(run.allocation_id)
        self._turned_away.remove(run)
        self._launched.add(run.allocation_id)
        self._core.notifier.notify(run.experiment_id)

    async def _give_up(self, run: runs.Run, defect: Exception) -> bool:
        """Ends a run whose launch has failed unexpectedly for long enough; says whether it did.

        One of which a container has begun goes on: its supervisor tells how it ends.
        """
        failure = self._failing.add(run.allocation_id, defect)
        containers = await self._core.database.read(lambda c: runs.containers_of(c, run.allocation_id))
        if not failure or any(container.pid for container in containers):
            return False
        _log.error("launch given up", allocation=run.allocation_id, exc_info=defect)
        with contextlib.suppress(Exception):
            await self._contact.kill(run.allocation_id)
        await self._ends.note_failed_launch(run, failure)
        return True

    async def _launch_unless_running(self, run: runs.Run) -> None:
        containers = await self._core.database.read(lambda c: runs.containers_of(c, run.allocation_id))
        if all(container.over for container in containers):
            return
        reports = await self._contact.ask(self._contact.engine.inspect(run.allocation_id))
        if reports and any(report.state is not ContainerState.UNKNOWN for report in reports):
            for report in reports:
                await self._watch.note(report)
            known = [report.state for report in reports if report.state is not ContainerState.UNKNOWN]
            if len(known) < len(containers) and ContainerState.ENDED not in known:
                # An earlier life was cut off while it launched them.
                await self._launch(run, containers)
        elif any(container.pid for container in containers):
            # It ran, and nothing of it is here: its trial continues from its last checkpoint, as another run.
            await self._ends.note_all_lost(run, containers)
        elif run.signal_deadline is not None:
            # It would begin only to end. A submission of which the answer was lost may be under way.
            await self._contact.kill(run.allocation_id)
            await self._ends.note_never_began(run, containers)
        else:
            await self._launch(run, containers)

    async def _launch(self, run: runs.Run, containers: Sequence[runs.Container]) -> None:
        pool = next(
            candidate for candidate in self._contact.engine.pools() if candidate.name == run.resource_pool
        )
        spec = await self._specs.allocation(run, containers, pool=pool)
        try:
            await self._contact.ask(self._contact.engine.launch(spec))
            self._spans.launched(run, at=self._core.clock.time())
        except (UnavailableError, QuotaError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the trial must fail of it instead of waiting for ever
            _log.exception("launch failed", allocation=run.allocation_id)
            # Some of its containers may have begun, and would use slots that are about to be given away.
            await self._contact.kill(run.allocation_id)
            await self._ends.note_failed_launch(run, str(error))
