"""The machines, as the lifecycle sees them: what is launched, what lives, what ended or was lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import structlog
from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute.contracts.run.exit_record import ExitRecord
from resolute.errors import InternalError, NotFoundError, ResoluteError
from resolute_experiments.backoff import LoggedBackoff
from resolute_experiments.exits.recording import record_container_exit
from resolute_experiments.moment import Moment
from resolute_experiments.notifier import Notifier
from resolute_experiments.resources.leases import Leases
from resolute_experiments.resources.protocol import (
    AllocationSpec,
    ContainerReport,
    ContainerState,
    ResourceManager,
    Slot,
)
from resolute_experiments.resources.run_spans import RunSpans
from resolute_experiments.resources.slots import by_node
from resolute_experiments.specs.identity import run_identity
from resolute_experiments.store import runs
from resolute_serving.context import TrialRun
from resolute_serving.database.engine import Database

_TICK_SECONDS = 5.0
_KILL_GRACE_SECONDS = 15.0
_STRAGGLER_SECONDS = 60.0
"""For how long containers continue once another of their run has failed: most frameworks notice it."""
_FAILED_LAUNCH = 125
"""Exit code of a container that could not be started, as shells and container engines use it."""

_log = structlog.get_logger("fleet")

TokenIssuer = Callable[[TrialRun], str]
"""Issues the token of a run."""


class Fleet:
    """Keeps the database's view of containers true to what the resource manager sees.

    Args:
        manager: Runs the containers.
        database: This service's database.
        notifier: Tells of changes.
        clock: Tells the time.
        leases: Knows who was heard of lately.
        issue_token: Issues the tokens of runs.
        address: ``host:port`` where supervisors reach the services.
        preemption_timeout: Seconds that trials get to checkpoint after a signal.
        spans: Is told what runs go through.
    """

    def __init__(  # noqa: PLR0913 - one for each that it works with
        self,
        manager: ResourceManager,
        *,
        database: Database,
        notifier: Notifier,
        clock: Clock,
        leases: Leases,
        issue_token: TokenIssuer,
        address: str,
        preemption_timeout: float,
        spans: RunSpans,
    ) -> None:
        self._spans = spans
        self._manager = manager
        self._database = database
        self._notifier = notifier
        self._clock = clock
        self._leases = leases
        self._issue_token = issue_token
        self._address = address
        self._preemption_timeout = preemption_timeout
        self._broken_since: dict[str, float] = {}
        self._unnoted: list[ContainerReport] = []
        """Ends that could not be noted yet: whoever watches a container tells its end once."""
        self._launching = asyncio.Lock()
        self._launched: set[str] = set()
        """Allocations that this process has launched, or found launched. Only runs that have not ended."""
        self.slots: Sequence[Slot] = manager.capacity()
        """Every slot."""

    @property
    def slot_ids(self) -> list[int]:
        """Every slot's number."""
        return [slot.id for slot in self.slots]

    @property
    def slot_count(self) -> int:
        """Number of slots."""
        return len(self.slots)

    @property
    def largest_node(self) -> int:
        """Number of slots of the node that has most."""
        return max(map(len, by_node(self.slots)))

    def containers(self, slot_ids: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """The slots of each container of a run that is given these; without slots, one container."""
        given = set(slot_ids)
        return by_node(slot for slot in self.slots if slot.id in given) or ((),)

    def node_of(self, slot_ids: Sequence[int]) -> int:
        """The node of a container that has these slots; the first for one that has none."""
        return next((slot.node for slot in self.slots if slot.id in slot_ids), 0)

    async def launch_pending(self) -> None:
        """Starts every run that was given slots and does not run yet.

        A run that cannot be started ends as a failure that says why. If something else fails, such as the
        database, the other runs are started all the same, and the next call tries again.

        Raises:
            Exception: What failed first.
        """
        failures: list[Exception] = []
        async with self._launching:
            live = await self._database.read(runs.unfinalized)
            self._launched.intersection_update(run.allocation_id for run in live)
            for run in live:
                if run.allocation_id in self._launched:
                    continue
                try:
                    await self._launch_unless_running(run)
                except Exception as failure:  # noqa: BLE001 - one run must not keep the others from starting
                    failures.append(failure)
                else:
                    self._launched.add(run.allocation_id)
                    self._notifier.notify(run.experiment_id)
        if failures:
            raise failures[0]

    async def _launch_unless_running(self, run: runs.Run) -> None:
        containers = await self._database.read(lambda c: runs.containers_of(c, run.allocation_id))
        if all(container.over for container in containers):
            return
        reports = await self._manager.inspect(run.allocation_id)
        if reports and any(report.state is not ContainerState.UNKNOWN for report in reports):
            for report in reports:
                await self._note(report)
        elif any(container.pid for container in containers):
            # It ran, and nothing of it is here: its trial continues from its last checkpoint, as another run.
            await self._note_lost(run, containers)
        else:
            await self._launch(run, containers)

    async def _note_lost(self, run: runs.Run, containers: Sequence[runs.Container]) -> None:
        _log.warning("nothing is left here of a run that was under way", allocation=run.allocation_id)
        for container in containers:
            await self._note(
                ContainerReport(
                    allocation_id=run.allocation_id,
                    container_rank=container.container_rank,
                    state=ContainerState.LOST,
                )
            )

    async def _launch(self, run: runs.Run, containers: Sequence[runs.Container]) -> None:
        spec = AllocationSpec(
            allocation_id=run.allocation_id,
            placements=tuple(container.slot_ids for container in containers),
            address=self._address,
            token=await self._token(run),
        )
        try:
            await self._manager.launch(spec)
            self._spans.launched(run, at=self._clock.time())
        except Exception as error:  # noqa: BLE001 - whatever it is, the trial must hear of it instead of waiting for ever
            _log.exception("launch failed", allocation=run.allocation_id)
            # Some of its containers may have begun, and would use slots that are about to be given away.
            await self._manager.kill(run.allocation_id)
            await self._note_failed_launch(run, str(error))

    async def _note_failed_launch(self, run: runs.Run, failure: str) -> None:
        moment = self._moment()

        def work(connection: Connection) -> None:
            for container in runs.containers_of(connection, run.allocation_id):
                record_container_exit(
                    connection,
                    run,
                    container.container_rank,
                    moment,
                    exited=True,
                    # One that had begun was ended above, and is missed by anyone who watches it.
                    lost=False,
                    exit_code=_FAILED_LAUNCH,
                    failure=f"the run could not be started: {failure}",
                )

        await self._database.write(work)
        self._notifier.notify(run.experiment_id)

    async def recover(self) -> None:
        """Finds out, after a start of this service, what became of every run that had not ended."""
        await self.launch_pending()
        for allocation_id in await self._manager.leftovers():
            await self._release_leftover(allocation_id)

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
        """Watches the machines until the service stops."""
        watcher = asyncio.create_task(self._watch(), name="fleet-watch")
        backoff = LoggedBackoff(_log, "a look at the machines failed")
        try:
            with self._notifier.subscribe("fleet") as changes:
                while not self._notifier.closed:
                    try:
                        await self._enforce()
                        await self.launch_pending()
                        await self._note_again()
                        backoff.succeeded()
                    except Exception as failure:  # noqa: BLE001 - a defect must not end the watch over the machines for good
                        backoff.failed(failure)
                    # A lease that runs out is noticed then, not at the next tick.
                    await changes.wait(min(_TICK_SECONDS, self._leases.seconds_until_next()))
        finally:
            await self._manager.close()
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)

    async def _watch(self) -> None:
        backoff = LoggedBackoff(_log, "the watch over the containers failed")
        while not self._notifier.closed:
            try:
                async for report in self._manager.watch():
                    backoff.succeeded()
                    await self._note_logged(report)
                return
            except Exception as failure:  # noqa: BLE001 - a defect must not end the watch over the machines for good
                await asyncio.sleep(backoff.failed(failure))

    async def _note_logged(self, report: ContainerReport) -> None:
        try:
            await self._note(report)
        except Exception as failure:  # noqa: BLE001 - the others must be noted; this one is noted later
            expected = isinstance(failure, ResoluteError) and not isinstance(failure, InternalError)
            _log.warning(
                "the end of a container could not be noted; it will be tried again",
                container=report,
                reason=str(failure),
                exc_info=None if expected else failure,
            )
            self._unnoted.append(report)

    async def _note_again(self) -> None:
        """Notes the ends that could not be noted when they came, such as while the database was away.

        A container whose supervisor left no trace could never be told from one that was not launched.
        """
        waiting, self._unnoted = self._unnoted, []
        for report in waiting:
            await self._note_logged(report)

    async def _note(self, report: ContainerReport) -> None:
        """Writes down a container that ended, unless it reported that itself."""
        if report.state not in {ContainerState.EXITED, ContainerState.LOST}:
            return
        moment = self._moment()

        def work(connection: Connection) -> str:
            run = runs.get(connection, report.allocation_id)
            container = runs.container(connection, report.allocation_id, report.container_rank)
            if container.over or run.ended:
                return ""
            rank = report.container_rank
            if report.exit is None:
                record_container_exit(connection, run, rank, moment, lost=True)
            else:
                record_container_exit(connection, run, rank, moment, **_exit_values(report.exit))
            return run.experiment_id

        try:
            experiment_id = await self._database.write(work)
        except NotFoundError:
            return
        if experiment_id:
            _log.info("container ended", allocation=report.allocation_id, state=report.state.value)
            self._leases.forget(report.allocation_id)
            self._notifier.notify(experiment_id)

    def _moment(self) -> Moment:
        return Moment(now=self._clock.time(), preemption_timeout=self._preemption_timeout)

    async def _enforce(self) -> None:
        """Ends what did not end when it was told to, and looks after those that fell silent."""
        now = self._clock.time()
        live = await self._database.read(runs.unfinalized)
        for run in live:
            deadline = run.signal_deadline
            if run.kill and deadline is not None and now > deadline + _KILL_GRACE_SECONDS:
                await self._manager.kill(run.allocation_id)
        await self._end_stragglers(live)
        for allocation_id in self._leases.expired(run.allocation_id for run in live):
            for report in await self._manager.inspect(allocation_id):
                await self._note(report)

    async def _end_stragglers(self, live: Sequence[runs.Run]) -> None:
        """Ends the containers of a run of which another has failed: they might wait for it forever."""
        distributed = [run.allocation_id for run in live if len(self.containers(run.slot_ids)) > 1]

        def broken(connection: Connection) -> list[str]:
            return [
                each for each in distributed if _has_failed_container(runs.containers_of(connection, each))
            ]

        found = await self._database.read(broken) if distributed else []
        now = self._clock.monotonic()
        self._broken_since = {each: self._broken_since.get(each, now) for each in found}
        for allocation_id, since in self._broken_since.items():
            if now - since >= _STRAGGLER_SECONDS:
                _log.info("another container has failed: the rest is ended", allocation=allocation_id)
                await self._database.write(partial(runs.mark_stragglers, allocation_id=allocation_id))
                await self._manager.kill(allocation_id)

    async def unreported(self) -> Sequence[str]:
        """Names every allocation of which reports wait that have not arrived."""
        return await self._manager.unreported()

    async def backlog_seconds(self) -> float:
        """For how long reports or lines of some run have waited without any of them arriving."""
        return await self._manager.backlog_seconds()

    async def kill(self, allocation_id: str) -> None:
        """Ends every process of an allocation at once."""
        await self._manager.kill(allocation_id)

    async def deliver_lines(self, ended: Sequence[runs.Run]) -> None:
        """Sends, for a bounded time, the lines that ended runs left."""
        tokens = {run.allocation_id: await self._token(run) for run in ended}
        if not await self._manager.deliver_lines(tokens):
            _log.warning("runs end before all of their lines have arrived", allocations=sorted(tokens))

    async def release(self, run: runs.Run) -> None:
        """Lets the machines forget a run that was settled, once what it left was sent."""
        await self._manager.release(run.allocation_id, token=await self._token(run))
        if self._spans.wanted:
            self._spans.settled(await self._database.read(lambda c: runs.get(c, run.allocation_id)))

    async def _token(self, run: runs.Run) -> str:
        return self._issue_token(await self._database.read(lambda c: run_identity(c, run)))


def _exit_values(record: ExitRecord) -> dict[str, Any]:
    return {
        "end_time": record.end_time,
        "exited": True,
        "exit_code": record.exit_code,
        "acknowledged": record.acknowledged,
        "early_exit_reason": record.early_exit_reason,
        "failure": record.failure,
    }


def _has_failed_container(containers: Sequence[runs.Container]) -> bool:
    """Whether a container has failed while another continues."""
    failed = any(container.exit_code or container.lost for container in containers)
    return failed and not all(container.over for container in containers)
