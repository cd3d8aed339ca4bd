"""The default resource manager: supervisors as processes of this machine, which outlive this process."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from pathlib import Path

import structlog

from resolute.contracts.calls.backoff import Backoff
from resolute.contracts.calls.tls import ClientTls
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.launch_order import LaunchOrder
from resolute_experiments.resources.local.container import LocalContainer, containers_in
from resolute_experiments.resources.local.fork_server import ForkServer
from resolute_experiments.resources.local.process_exit import POLL_SECONDS, wait_for_exit
from resolute_experiments.resources.local.spool_backlog import Backlog
from resolute_experiments.resources.protocol import (
    AllocationSpec,
    ContainerReport,
    ContainerState,
    Pool,
)
from resolute_experiments.resources.slots import assign_to_nodes, detect_slots

DEFAULT_POOL = "default"
"""Name of the pool of this machine where no settings give it another."""
_RELEASED = "released"
"""Marks the folder of an allocation that nobody needs any more; its content says nothing."""
_FORK_SERVER_LOG = "fork-server.log"
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 300.0
"""Between two attempts to send what a run left: the first pause, and the longest."""
_UPLOADS_AT_ONCE = 4
_START_SECONDS = 5.0
"""What a process that sends lines may take to start."""
_LINES_POLL_SECONDS = 0.05
_log = structlog.get_logger("local")


class LocalResourceManager:
    """Runs allocations on the slots of this machine.

    Args:
        runs: Where run directories lie: ``<allocation>/<container rank>``.
        slots: Number of slots; None to count GPUs, or else cores.
        outage_timeout: Seconds that a run continues while no service answers.
        log_wait: Seconds that the end of a run waits for the logs service to take the run's last lines.
        nodes: As how many machines this one appears, each with a share of the slots and a loopback address of
            its own: trials across several machines can be tried on one.
        address: ``host:port`` of the services now, to send what ended runs left; empty for where they were
            when the run began.
        tls: Whom supervisors and trials trust there; None for a plain port.
        pool: Name of its pool.
    """

    prompt = True

    def __init__(
        self,
        runs: Path,
        *,
        slots: int | None = None,
        outage_timeout: float = 3600.0,
        log_wait: float = 10.0,
        nodes: int = 1,
        address: str = "",
        tls: ClientTls | None = None,
        pool: str = DEFAULT_POOL,
    ) -> None:
        self._runs = runs
        self._slots = assign_to_nodes(detect_slots(slots), nodes)
        self._pool = Pool(name=pool, slots=self._slots)
        self._outage_timeout = outage_timeout
        self._log_wait = log_wait
        self._address = address
        self._tls = tls
        self._reports: asyncio.Queue[ContainerReport | None] = asyncio.Queue()
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._cleaners: dict[str, asyncio.Task[None]] = {}
        self._stoppers: dict[str, asyncio.Task[None]] = {}
        self._backlog = Backlog()
        self._fork_server = ForkServer(runs.with_name(_FORK_SERVER_LOG))
        self._children: list[subprocess.Popen[bytes]] = []
        """Processes that send what ended runs left."""

    def pools(self) -> Sequence[Pool]:
        """The one pool of this machine."""
        return (self._pool,)

    async def launch(self, spec: AllocationSpec) -> None:
        """Starts the supervisors of an allocation; those that live, or ended already, are left alone.

        Raises:
            OSError: They cannot be started, because the disk is full for example.
        """
        for rank, slot_ids in enumerate(spec.placements):
            container = LocalContainer(self._runs, spec.allocation_id, rank)
            await asyncio.to_thread(container.start, self._order(spec, rank, slot_ids), self._fork_server)
            self._watch_one(container)

    def _order(self, spec: AllocationSpec, rank: int, slot_ids: Sequence[int]) -> LaunchOrder:
        slots = {slot.id: slot for slot in self._slots}
        node = slots[slot_ids[0]].node if slot_ids else 0
        devices = tuple(slots[number].device for number in slot_ids if slots[number].device)
        return LaunchOrder(
            allocation_id=spec.allocation_id,
            container_rank=rank,
            master=spec.address,
            tls=None if self._tls is None else self._tls.to_json(),
            token=spec.token,
            slot_ids=tuple(slot_ids),
            slot_kind=slots[slot_ids[0]].kind.value if slot_ids else "cpu",
            devices=devices,
            agent_id=socket.gethostname() if not node else f"{socket.gethostname()}-{node}",
            bind_address=f"127.0.0.{1 + node}",
            python=sys.executable,
            lease_patience_seconds=self._outage_timeout,
            log_wait_seconds=self._log_wait,
            warm_directory=str(self._runs.absolute().with_name("warm")),
        )

    async def inspect(self, allocation_id: str) -> Sequence[ContainerReport]:
        """Tells the state of every container by rank, and ends what a lost supervisor left running."""
        reports = []
        for container in containers_in(self._runs, allocation_id):
            report = await asyncio.to_thread(container.inspect)
            if report.state is ContainerState.RUNNING:
                self._watch_one(container)
            reports.append(report)
        return reports

    async def stop(self, allocation_id: str, *, grace: float) -> None:
        """Asks an allocation to exit by SIGTERM, and kills it once the grace is over."""
        for container in containers_in(self._runs, allocation_id):
            await asyncio.to_thread(container.terminate)
        self._start_task(self._stoppers, allocation_id, self._kill_later(allocation_id, grace))

    async def _kill_later(self, allocation_id: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.kill(allocation_id)

    async def kill(self, allocation_id: str) -> None:
        """Ends every process of an allocation at once, its supervisors included."""
        for container in containers_in(self._runs, allocation_id):
            await asyncio.to_thread(container.kill)

    async def deliver_lines(self, tokens: Mapping[str, str]) -> bool:
        """Sends the lines that allocations left whose supervisors are gone, for a bounded time."""
        waiting = await asyncio.to_thread(self._containers_with_lines, tokens)
        if not waiting:
            return True
        places = asyncio.Semaphore(_UPLOADS_AT_ONCE)
        uploads = [
            asyncio.create_task(self._deliver_lines(container, token, places)) for container, token in waiting
        ]
        _, late = await asyncio.wait(uploads, timeout=self._log_wait + _START_SECONDS)
        for upload in late:
            # Its process continues.
            upload.cancel()
        await asyncio.gather(*uploads, return_exceptions=True)
        return not late

    def _containers_with_lines(self, tokens: Mapping[str, str]) -> list[tuple[LocalContainer, str]]:
        # A supervisor that lives sends its lines itself, and has waited for them before it reported its end.
        return [
            (container, token)
            for allocation_id, token in tokens.items()
            for container in containers_in(self._runs, allocation_id)
            if not container.locked and container.lines_wait()
        ]

    async def _deliver_lines(self, container: LocalContainer, token: str, places: asyncio.Semaphore) -> None:
        async with places:
            process = await asyncio.to_thread(
                container.upload_orphans, token, address=self._address, note_late_lines=True
            )
            self._register_child(process)
            # The process also sends reports, which may take longer.
            while process.poll() is None and await asyncio.to_thread(container.lines_wait):  # noqa: ASYNC110
                await asyncio.sleep(_LINES_POLL_SECONDS)

    async def release(self, allocation_id: str, *, token: str = "") -> None:
        """Forgets an allocation that was settled, and cleans up behind it in the background."""
        folder = self._runs / allocation_id
        if stopper := self._stoppers.pop(allocation_id, None):
            stopper.cancel()
        if folder.is_dir():
            (folder / _RELEASED).touch()
            self._clean_later(allocation_id, token)

    async def leftovers(self) -> Sequence[str]:
        """Names every allocation of which something is on disk and which was not released."""
        folders = self._runs.iterdir() if self._runs.is_dir() else ()
        return [folder.name for folder in folders if folder.is_dir() and not (folder / _RELEASED).exists()]

    async def unreported(self) -> Sequence[str]:
        """Names every allocation of which reports wait here that have not arrived."""
        return await asyncio.to_thread(self._look_for_reports)

    def _look_for_reports(self) -> list[str]:
        waiting = (one.run.path.parent.name for one in self._containers() if one.reports_wait())
        return sorted(set(waiting))

    async def backlog_seconds(self) -> float:
        """Returns for how long reports or lines of some run have waited here without any of them arriving."""
        return await asyncio.to_thread(self._look_at_backlog)

    def _look_at_backlog(self) -> float:
        spools = (spool for container in self._containers() for spool in container.spools())
        return self._backlog.look(spools, now=time.monotonic())

    def _containers(self) -> list[LocalContainer]:
        folders = [folder.name for folder in self._runs.iterdir()] if self._runs.is_dir() else []
        return [one for name in folders for one in containers_in(self._runs, name)]

    async def watch(self) -> AsyncIterator[ContainerReport]:
        """Reports each container whose supervisor ended, until ``close``."""
        for marker in self._runs.glob(f"*/{_RELEASED}"):
            self._clean_later(marker.parent.name, "")
        while (report := await self._reports.get()) is not None:
            yield report

    async def close(self) -> None:
        """Ends the watching. Supervisors continue."""
        kinds = (self._watchers, self._cleaners, self._stoppers)
        tasks = [task for kind in kinds for task in kind.values()]
        for kind in kinds:
            kind.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._reap()
        for process in self._children:
            # It outlives this process on purpose, and its object is not to complain about that.
            process.returncode = 0
        self._children.clear()
        await asyncio.to_thread(self._fork_server.close)
        await self._reports.put(None)

    def _watch_one(self, container: LocalContainer) -> None:
        self._start_task(self._watchers, repr(container), self._report_end(container))

    async def _report_end(self, container: LocalContainer) -> None:
        while True:
            await self._until_unlocked(container)
            report = await asyncio.to_thread(container.inspect)
            if report.state is not ContainerState.RUNNING:
                break
            await asyncio.sleep(POLL_SECONDS)
        if report.state is ContainerState.UNKNOWN:
            report = container.never_started()
        await self._reports.put(report)

    async def _until_unlocked(self, container: LocalContainer) -> None:
        while container.locked:
            await wait_for_exit(container.supervisor)
        self._reap()

    def _clean_later(self, allocation_id: str, token: str) -> None:
        self._start_task(self._cleaners, allocation_id, self._clean(allocation_id, token))

    async def _clean(self, allocation_id: str, token: str) -> None:
        """Waits for the end of an allocation's supervisors, sends what they left, and removes the rest."""
        folder = self._runs / allocation_id
        for container in containers_in(self._runs, allocation_id):
            await self._until_unlocked(container)
            await self._until_delivered(container, token)
            await asyncio.to_thread(container.remove)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _until_delivered(self, container: LocalContainer, token: str) -> None:
        """Sends what a container left, again and again: a sender can be killed, or be another life's."""
        backoff = Backoff(first=_FIRST_PAUSE_SECONDS, longest=_LONGEST_PAUSE_SECONDS)
        while await asyncio.to_thread(container.undelivered):
            process = await asyncio.to_thread(container.upload_orphans, token, address=self._address)
            self._register_child(process)
            while process.poll() is None:
                await wait_for_exit(ProcessIdentity.of(process.pid))
            # What the sender did not count as undelivered is torn, and nobody can read it.
            if process.returncode == 0:
                return
            _log.warning("a run's history still waits on disk", run=str(container.run.path))
            await asyncio.sleep(backoff.failed())

    def _start_task(
        self, tasks: dict[str, asyncio.Task[None]], name: str, work: Coroutine[None, None, None]
    ) -> None:
        if name in tasks:
            work.close()
            return
        task = asyncio.create_task(work, name=f"local-{name}")
        tasks[name] = task
        task.add_done_callback(lambda ended: self._task_ended(tasks, name, ended))

    def _task_ended(self, tasks: dict[str, asyncio.Task[None]], name: str, task: asyncio.Task[None]) -> None:
        if tasks.get(name) is task:
            del tasks[name]
        if not task.cancelled() and task.exception() is not None:
            _log.error("looking after a run failed", run=name, exc_info=task.exception())

    def _register_child(self, process: subprocess.Popen[bytes]) -> None:
        """Remembers a child, so that it can be waited for and leaves no zombie."""
        self._children.append(process)

    def _reap(self) -> None:
        self._children = [process for process in self._children if process.poll() is None]
