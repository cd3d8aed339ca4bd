"""One engine, as the lifecycle sees it: what is launched there, what lives, what ended or was lost.

Every engine has tasks of its own, and nobody waits for one that does not answer: its runs go on meanwhile,
and are launched, noted, ended and released once it answers again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import structlog
from sqlalchemy.engine import Connection

from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute.errors import NotFoundError, QuotaError, UnavailableError
from resolute_engines.kit.attempts import try_each
from resolute_engines.protocol import (
    AllocationSpec,
    CapacityChange,
    ContainerReport,
    ContainerState,
    EngineEvent,
    EvictionNotice,
    Pool,
    ResourceManager,
)
from resolute_experiments.allocations.container_ends import ContainerEnds
from resolute_experiments.allocations.evictions import Evictions
from resolute_experiments.allocations.layout import layout
from resolute_experiments.allocations.leases import Leases
from resolute_experiments.allocations.run_spans import RunSpans
from resolute_experiments.allocations.stragglers import Stragglers
from resolute_experiments.allocations.turned_away import TurnedAway
from resolute_experiments.allocations.waiting_containers import WaitingContainers
from resolute_experiments.context import ServiceContext
from resolute_experiments.specs.identity import run_identity
from resolute_experiments.store import experiments, runs
from resolute_experiments.topics import SCHEDULER_WAKEUP
from resolute_serving.context import TrialRun

T = TypeVar("T")
_TICK_SECONDS = 5.0
_QUIET_SECONDS = 30.0
"""An engine of which nothing was asked for so long is asked: people shall hear that it is away."""
_KILL_GRACE_SECONDS = 15.0
_LAUNCHES_AT_ONCE = 8
"""How many launches an engine is asked for at a time that takes long to answer."""

_log = structlog.get_logger("fleet")

TokenIssuer = Callable[[TrialRun], str]
"""Issues the token of a run."""


class Engine:
    """Keeps the database's view of the containers of one engine true to what its resource manager sees.

    Args:
        manager: Runs the containers.
        core: The service's database, clock and notifier.
        name: Names the engine in settings and messages.
        leases: Knows who was heard of lately.
        issue_token: Issues the tokens of runs.
        address: ``host:port`` where supervisors reach the services.
        spans: Is told what runs go through.
    """

    def __init__(
        self,
        manager: ResourceManager,
        core: ServiceContext,
        *,
        name: str,
        leases: Leases,
        issue_token: TokenIssuer,
        address: str,
        spans: RunSpans,
    ) -> None:
        self._spans = spans
        self._manager = manager
        self._core = core
        self._database = core.database
        self._notifier = core.notifier
        self._clock = core.clock
        self._leases = leases
        self._issue_token = issue_token
        self._address = address
        self._ends = ContainerEnds(core, leases)
        self._evictions = Evictions(core)
        self._stragglers = Stragglers(core, leases)
        self._launching = asyncio.Lock()
        self._launched: set[str] = set()
        """Allocations that this process has launched, or found launched. Only runs that have not ended."""
        self._waiting = WaitingContainers(name)
        """Containers that the engine has and did not begin. Only of live runs."""
        self._stopped: set[str] = set()
        """Allocations that were taken back because of their signal while something of them waited."""
        self._unreleased: dict[str, runs.Run] = {}
        """Settled runs that the engine could not be told of yet."""
        self._turned_away = TurnedAway()
        self._recovered = False
        self._asked_at = core.clock.monotonic()
        self.name = name
        """Names it in settings and messages."""
        self.problem = ""
        """Why it did not do what it was last asked; empty while it answers."""

    @property
    def prompt(self) -> bool:
        """Whether the scheduler waits for its launches."""
        return self._manager.prompt

    def pools(self) -> Sequence[Pool]:
        """Its pools as they are now."""
        return self._manager.pools()

    def wait_reason(self, allocation_id: str) -> str:
        """Says why the engine has not begun an allocation; empty where nothing is known."""
        return self._waiting.reason(allocation_id) or self._turned_away.reason(allocation_id)

    def wake(self) -> None:
        """Has it look now, in its own task, at what there is to do."""
        self._notifier.notify(self._topic)

    @property
    def _topic(self) -> tuple[str, str]:
        return ("engine", self.name)

    async def launch_pending(self) -> None:
        """Starts every run of its pools that was placed and does not run yet.

        A run that cannot be started ends as a failure that says why. If something else fails, such as the
        database or the way to the engine, the other runs are started all the same, and the next call tries
        again.

        Raises:
            Exception: What failed first.
        """
        async with self._launching:
            live = {run.allocation_id: run for run in await self._live()}
            self._launched &= live.keys()
            self._stopped &= live.keys()
            self._waiting.keep(live.keys())
            self._turned_away.ask_again(live.keys())
            pending = [run for name, run in live.items() if name not in self._launched]
            new = [run for run in pending if run not in self._turned_away]
            again = [run for run in pending if run in self._turned_away]
            launch = partial(try_each, self._launch_or_keep)
            steps = (
                partial(launch, new, at_once=1 if self.prompt else _LAUNCHES_AT_ONCE),
                # The first that is turned away again answers for the rest of its pool.
                partial(launch, again, at_once=1),
            )
            await try_each(_call, steps, at_once=1)

    async def _live(self) -> list[runs.Run]:
        """Its runs that were not settled, oldest first."""
        names = {pool.name for pool in self.pools()}
        return [run for run in await self._database.read(runs.unfinalized) if run.resource_pool in names]

    async def _launch_or_keep(self, run: runs.Run) -> None:
        """Launches a run, unless its pool takes no more now."""
        if run.signal_deadline is None and self._turned_away.would_be_again(run):
            return
        try:
            await self._launch_unless_running(run)
        except QuotaError as full:
            self._turned_away.add(run, str(full))
            return
        self._turned_away.remove(run)
        self._launched.add(run.allocation_id)
        self._notifier.notify(run.experiment_id)

    async def _launch_unless_running(self, run: runs.Run) -> None:
        containers = await self._database.read(lambda c: runs.containers_of(c, run.allocation_id))
        if all(container.over for container in containers):
            return
        reports = await self._ask(self._manager.inspect(run.allocation_id))
        if reports and any(report.state is not ContainerState.UNKNOWN for report in reports):
            for report in reports:
                await self._heard(report)
            known = [report.state for report in reports if report.state is not ContainerState.UNKNOWN]
            if len(known) < len(containers) and ContainerState.ENDED not in known:
                # An earlier life was cut off while it launched them.
                await self._launch(run, containers)
        elif any(container.pid for container in containers):
            # It ran, and nothing of it is here: its trial continues from its last checkpoint, as another run.
            await self._ends.note_all_lost(run, containers)
        elif run.signal_deadline is not None:
            # It would begin only to end. A submission of which the answer was lost may be under way.
            await self._ask(self._manager.kill(run.allocation_id))
            await self._ends.note_never_began(run, containers)
        else:
            await self._launch(run, containers)

    async def _launch(self, run: runs.Run, containers: Sequence[runs.Container]) -> None:
        spec = await self._spec(run, containers)
        try:
            await self._ask(self._manager.launch(spec))
            self._spans.launched(run, at=self._clock.time())
        except (UnavailableError, QuotaError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the trial must hear of it instead of waiting for ever
            _log.exception("launch failed", allocation=run.allocation_id)
            # Some of its containers may have begun, and would use slots that are about to be given away.
            await self._ask(self._manager.kill(run.allocation_id))
            await self._ends.note_failed_launch(run, str(error))

    async def _spec(self, run: runs.Run, containers: Sequence[runs.Container]) -> AllocationSpec:
        def work(connection: Connection) -> AllocationSpec:
            experiment = experiments.get(connection, experiment_id=run.experiment_id)
            return AllocationSpec(
                allocation_id=run.allocation_id,
                placements=tuple(container.slot_ids for container in containers),
                address=self._address,
                token=self._issue_token(run_identity(connection, run)),
                pool=run.resource_pool,
                config=experiment.config,
                priority=experiment.priority,
            )

        return await self._database.read(work)

    async def recover(self) -> None:
        """Finds out, after a start of this service, what became of every run that had not ended.

        Runs of which that cannot be said are in the log; ``run`` tries again.

        Raises:
            UnavailableError: The engine does not answer; to be repeated.
        """
        try:
            await try_each(_call, (self.launch_pending, self._release_leftovers), at_once=1)
        except UnavailableError:
            raise
        except Exception:  # noqa: BLE001 - one run must not keep the service from starting
            _log.exception("what became of some runs is not known yet", engine=self.name)

    async def _release_leftovers(self) -> None:
        if not self._recovered:
            await try_each(self._release_leftover, await self._ask(self._manager.leftovers()))
            self._recovered = True

    async def _release_leftover(self, allocation_id: str) -> None:
        """Releases a run that was settled in the last moment of an earlier life of this service."""
        try:
            run = await self._database.read(lambda c: runs.get(c, allocation_id))
        except NotFoundError:
            _log.warning("something is left of a run that nobody knows", allocation=allocation_id)
            return
        if run.ended:
            await self.release(run)

    async def run(self) -> None:
        """Watches the engine until the service stops."""
        watcher = asyncio.create_task(self._watch(), name=f"watch-{self.name}")
        backoff = LoggedBackoff(_log, "a look at the machines failed", engine=self.name)
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
            await self._manager.close()
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)

    async def _look(self) -> None:
        steps = (
            self._ends.note_again,
            self._evictions.note_again,
            self.launch_pending,
            self._release_leftovers,
            self._enforce,
            self._release_again,
            self._ask_if_quiet,
        )
        await try_each(_call, steps, at_once=1)

    async def _release_again(self) -> None:
        await try_each(self.release, list(self._unreleased.values()))

    async def _ask_if_quiet(self) -> None:
        """Finds out whether the engine answers, where nothing else was asked of it."""
        quiet = self._clock.monotonic() - self._asked_at
        if quiet > (_TICK_SECONDS if self.problem else _QUIET_SECONDS):
            await self._ask(self._manager.leftovers())

    async def _watch(self) -> None:
        backoff = LoggedBackoff(_log, "the watch over the containers failed", engine=self.name)
        while not self._notifier.closed:
            try:
                async for event in self._manager.watch():
                    backoff.succeeded()
                    await self._take(event)
                return
            except Exception as failure:  # noqa: BLE001 - a defect must not end the watch over the machines for good
                await asyncio.sleep(backoff.failed(failure))

    async def _take(self, event: EngineEvent) -> None:
        if isinstance(event, ContainerReport):
            self._waiting.note(event)
            await self._ends.note_or_keep(event)
        elif isinstance(event, EvictionNotice):
            await self._evictions.note_or_keep(event)
        elif isinstance(event, CapacityChange):
            self._notifier.notify(SCHEDULER_WAKEUP)

    async def _heard(self, report: ContainerReport) -> None:
        self._waiting.note(report)
        await self._ends.note(report)

    async def _enforce(self) -> None:
        """Ends what did not end when it was told to, and looks after those that fell silent."""
        live = await self._live()
        steps = (self._end_late, self._end_stragglers, self._look_after_silent)
        await try_each(lambda step: step(live), steps, at_once=1)

    async def _end_late(self, live: Sequence[runs.Run]) -> None:
        now = self._clock.time()

        async def end(run: runs.Run) -> None:
            deadline, allocation_id = run.signal_deadline, run.allocation_id
            if deadline is None:
                return
            if run.kill and now > deadline + _KILL_GRACE_SECONDS:
                await self.kill(allocation_id)
            elif allocation_id in self._waiting and allocation_id not in self._stopped:
                # Of what waits nobody is there yet who could hear of its signal.
                await self._ask(self._manager.stop(allocation_id, grace=max(deadline - now, 0.0)))
                self._stopped.add(allocation_id)

        await try_each(end, live)

    async def _look_after_silent(self, live: Sequence[runs.Run]) -> None:
        # Nobody is heard of what waits in the engine's queue, and the watch tells when it begins.
        names = [
            run.allocation_id
            for run in live
            if run.allocation_id in self._launched and not self._waiting.nothing_began(run.allocation_id)
        ]
        await try_each(self._look_after, self._leases.expired(names))

    async def _look_after(self, allocation_id: str) -> None:
        """Asks after a run that fell silent: one that the engine does not know any more is lost.

        So is one that was never heard of: what it was handed to may have died before its supervisor spoke.
        """
        reports = await self._ask(self._manager.inspect(allocation_id))
        # Asked once for each lease that runs out, not at each look.
        self._leases.renew(allocation_id)
        for report in reports:
            await self._heard(report)
        if not reports:
            run = await self._database.read(lambda c: runs.get(c, allocation_id))
            containers = await self._database.read(lambda c: runs.containers_of(c, allocation_id))
            await self._ends.note_all_lost(run, containers)

    async def _end_stragglers(self, live: Sequence[runs.Run]) -> None:
        """Ends the containers of a run of which another has failed: they might wait for it forever."""
        pools = {pool.name: pool for pool in self.pools()}
        distributed = [run for run in live if len(layout(pools[run.resource_pool], run.slot_ids)) > 1]
        await try_each(self._end_straggler, await self._stragglers.overdue(distributed))

    async def _end_straggler(self, allocation_id: str) -> None:
        _log.info("another container has failed: the rest is ended", allocation=allocation_id)
        await self._stragglers.mark(allocation_id)
        await self.kill(allocation_id)

    async def unreported(self) -> Sequence[str]:
        """Names every allocation of which reports wait that have not arrived.

        Raises:
            UnavailableError: After a start the engine was not yet asked what is left of earlier runs.
        """
        if not self._recovered:
            raise UnavailableError(f"engine {self.name} has not told yet what it has of earlier runs")
        return sorted({*self._unreleased, *await self._manager.unreported()})

    async def backlog_seconds(self) -> float:
        """For how long reports or lines of some run have waited without any of them arriving."""
        return await self._manager.backlog_seconds()

    async def kill(self, allocation_id: str) -> None:
        """Ends every process of an allocation at once."""
        await self._ask(self._manager.kill(allocation_id))

    async def deliver_lines(self, ended: Sequence[runs.Run]) -> None:
        """Sends, for a bounded time, the lines that ended runs left."""
        tokens = {run.allocation_id: await self._token(run) for run in ended}
        try:
            arrived = await self._ask(self._manager.deliver_lines(tokens))
        except UnavailableError:
            arrived = False
        if not arrived:
            _log.warning("runs end before all of their lines have arrived", allocations=sorted(tokens))

    async def release(self, run: runs.Run) -> None:
        """Lets the engine forget a run that was settled, once what it left was sent; later, if it is away."""
        self._leases.settled(run.allocation_id)
        token = await self._token(run)
        try:
            await self._ask(self._manager.release(run.allocation_id, token=token))
        except UnavailableError:
            self._unreleased[run.allocation_id] = run
        else:
            self._unreleased.pop(run.allocation_id, None)
            if self._spans.wanted:
                self._spans.settled(await self._database.read(lambda c: runs.get(c, run.allocation_id)))

    async def _token(self, run: runs.Run) -> str:
        return self._issue_token(await self._database.read(lambda c: run_identity(c, run)))

    async def _ask(self, answer: Awaitable[T]) -> T:
        """Waits for an answer of the engine, and remembers whether it answers."""
        try:
            found = await answer
        except UnavailableError as failure:
            self.problem = f"engine {self.name} does not answer, so its runs are not looked after: {failure}"
            raise
        finally:
            self._asked_at = self._clock.monotonic()
        self.problem = ""
        return found


async def _call(step: Callable[[], Awaitable[None]]) -> None:
    await step()
