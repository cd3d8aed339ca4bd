"""The runs of one engine.

Every engine has its own tasks, so an engine that does not answer delays no other one. Its runs continue, and
pending launches, reports, kills and releases are carried out once it answers again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute.contracts.tasks import end_tasks
from resolute.errors import UnavailableError
from resolute_engines.kit.attempts import try_each
from resolute_engines.protocol import Engine
from resolute_experiments.allocations.contact import EngineContact
from resolute_experiments.allocations.enforcing.enforcement import Enforcement
from resolute_experiments.allocations.launching.launches import Launches
from resolute_experiments.allocations.leases import Leases
from resolute_experiments.allocations.releases import Releases
from resolute_experiments.allocations.run_spans import RunSpans
from resolute_experiments.allocations.run_specs import RunSpecs
from resolute_experiments.allocations.watching.container_ends import ContainerEnds
from resolute_experiments.allocations.watching.evictions import Evictions
from resolute_experiments.allocations.watching.waiting_containers import WaitingContainers
from resolute_experiments.allocations.watching.watch import Watch
from resolute_experiments.context import ServiceContext

_TICK_SECONDS = 5.0
_QUIET_SECONDS = 30.0
"""An engine of which nothing was asked for so long is asked: people shall see that it is away."""

_log = structlog.get_logger("fleet")


class EngineRuns:
    """Updates the containers of one engine in the database by the engine's reports.

    Args:
        engine: Runs the containers.
        core: The service's database, clock and notifier.
        name: Name of the engine in settings and messages.
        leases: The leases of runs.
        specs: Builds the specs of runs for the engine.
        spans: Receives the phases of runs.
    """

    def __init__(
        self,
        engine: Engine,
        core: ServiceContext,
        *,
        name: str,
        leases: Leases,
        specs: RunSpecs,
        spans: RunSpans,
    ) -> None:
        self.engine = engine
        """What runs the containers."""
        self.contact = EngineContact(engine, name=name, clock=core.clock)
        """Its calls, and whether it answers."""
        waiting = WaitingContainers(name)
        ends = ContainerEnds(core, leases)
        self._notifier = core.notifier
        self._leases = leases
        self._specs = specs
        self._watch = Watch(
            self.contact, core.notifier, waiting=waiting, ends=ends, evictions=Evictions(core)
        )
        self.launches = Launches(
            self.contact, core, specs=specs, watch=self._watch, ends=ends, waiting=waiting, spans=spans
        )
        """What is launched there."""
        self.releases = Releases(
            self.contact,
            core.database,
            specs=specs,
            leases=leases,
            spans=spans,
            clock=core.clock,
            wake=self.wake,
        )
        """What is released there."""
        self._enforcement = Enforcement(
            self.contact,
            core,
            launches=self.launches,
            watch=self._watch,
            ends=ends,
            waiting=waiting,
            leases=leases,
        )

    def wake(self) -> None:
        """Has it look now, in its own task, at what there is to do."""
        self._notifier.notify(self._topic)

    @property
    def _topic(self) -> tuple[str, str]:
        return ("engine", self.contact.name)

    async def recover(self) -> None:
        """Finds out, after a start of this service, what became of every run that had not ended.

        Runs for which that is not known are in the log; ``run`` tries again.

        Raises:
            UnavailableError: The engine does not answer; to be repeated.
        """
        try:
            await _each(self.launches.launch_pending, self.releases.release_leftovers)
        except UnavailableError:
            raise
        except Exception:  # noqa: BLE001 - one run must not keep the service from starting
            _log.exception("the ends of some runs are not known yet", engine=self.contact.name)

    async def run(self) -> None:
        """Watches the engine until the service stops; closing it is left to the caller."""
        watcher = asyncio.create_task(self._watch.run(), name=f"watch-{self.contact.name}")
        backoff = LoggedBackoff(_log, "reading the machines failed", engine=self.contact.name)
        try:
            with self._notifier.subscribe(self._topic) as changes:
                while not self._notifier.closed:
                    try:
                        await self._look()
                        backoff.succeeded()
                    except Exception as failure:  # noqa: BLE001 - a defect must not end the watch over the machines for good
                        backoff.failed(failure)
                    # A lease that runs out is noticed then, not at the next tick.
                    await changes.wait(min(_TICK_SECONDS, self._leases.seconds_until_next()))
        finally:
            await end_tasks(watcher)

    async def _look(self) -> None:
        await _each(
            self._watch.note_again,
            self.launches.launch_pending,
            self.releases.release_leftovers,
            self._enforce,
            self.releases.release_again,
            self._ask_if_quiet,
        )

    async def _enforce(self) -> None:
        pools = [pool.name for pool in self.engine.pools()]
        await self._enforcement.enforce(await self._specs.live(pools))

    async def _ask_if_quiet(self) -> None:
        """Finds out whether the engine answers, where nothing else was asked of it."""
        if self.contact.quiet_seconds > (_TICK_SECONDS if self.contact.problem else _QUIET_SECONDS):
            await self.contact.ask(self.engine.leftovers())


async def _each(*steps: Callable[[], Awaitable[None]]) -> None:
    """Takes steps one after the other, also if one fails; the first failure is raised after that."""
    taken: Sequence[Callable[[], Awaitable[None]]] = steps
    await try_each(lambda step: step(), taken, at_once=1)
