"""Sends the unsent data of ended runs from their run directories, and then removes the directories."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog

from resolute.contracts.calls.backoff import Backoff
from resolute.contracts.calls.logged_backoff import LoggedBackoff, until_it_succeeds
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.tasks import end_tasks
from resolute.errors import UnavailableError
from resolute_engines.kit.named_tasks import NamedTasks
from resolute_engines.kit.run_directories.container import RunContainer, containers_in
from resolute_engines.kit.run_directories.process_exit import wait_for_exit
from resolute_engines.kit.run_directories.spools import StalledSpools
from resolute_engines.kit.shared_attempt import SharedAttempt
from resolute_engines.kit.shared_storage import OwnDisk, RunStorage

_RELEASED = "released"
"""Marks the folder of an allocation that was released; its content has no meaning."""
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 300.0
"""Between two attempts to send what a run left: the first pause, and the longest."""
_UPLOADS_AT_ONCE = 4
_START_SECONDS = 5.0
"""What a process that sends lines may take to start."""
_LINES_POLL_SECONDS = 0.05
_LOOK_SECONDS = 3.0
"""How long one who asks for the backlog waits for a look: the service's health waits for the answer."""
T = TypeVar("T")
_log = structlog.get_logger("deliveries")


class Deliveries:
    """Sends and removes run directories that this process can read.

    Args:
        runs: The directory with the run directories, ``<allocation>/<container rank>``.
        address: Current ``host:port`` of the services; empty for the address at the start of the run.
        log_wait: Seconds for which the end of a run waits until the logs service has stored the last lines.
        is_over: Returns whether the supervisor of a container has ended. It is called in a thread.
        until_over: Waits until no process of a container runs.
        storage: Makes the calls on ``runs``. Its creator closes it.
    """

    def __init__(
        self,
        runs: Path,
        *,
        address: str,
        log_wait: float,
        is_over: Callable[[RunContainer], bool],
        until_over: Callable[[RunContainer], Awaitable[None]],
        storage: RunStorage | None = None,
    ) -> None:
        self._storage = storage or OwnDisk()
        self._runs = runs
        self._address = address
        self._log_wait = log_wait
        self._is_over = is_over
        self._until_over = until_over
        self._cleaners = NamedTasks("clean")
        self._stalled = StalledSpools()
        self._seconds = 0.0
        self._looking = SharedAttempt(
            "look-at-backlog", self._look, seconds=_LOOK_SECONDS, late=f"{runs} has been looked at"
        )
        self._senders: list[subprocess.Popen[bytes]] = []

    async def deliver_lines(self, tokens: Mapping[str, str]) -> bool:
        """Sends the lines that allocations left whose supervisors are gone, for a bounded time.

        Args:
            tokens: A fresh token of each run, by allocation.

        Returns:
            Whether all lines have arrived.
        """
        waiting = await self._storage.ask("", lambda: self._undelivered(tokens))
        if not waiting:
            return True
        places = asyncio.Semaphore(_UPLOADS_AT_ONCE)
        uploads = [
            asyncio.create_task(
                self._deliver_lines(container, token, places), name=f"deliver-lines-{container}"
            )
            for container, token in waiting
        ]
        try:
            _, late = await asyncio.wait(uploads, timeout=self._log_wait + _START_SECONDS)
        finally:
            # The processes of late ones continue.
            await end_tasks(*uploads)
        return not late and not any(isinstance(upload.exception(), UnavailableError) for upload in uploads)

    def _undelivered(self, tokens: Mapping[str, str]) -> list[tuple[RunContainer, str]]:
        # A supervisor that lives sends its lines itself, and has waited for them before it reported its end.
        return [
            (container, token)
            for allocation_id, token in tokens.items()
            for container in containers_in(self._runs, allocation_id)
            # Reports are sent too: what a run left may be held for days before it is released.
            if container.spools.undelivered() and self._is_over(container)
        ]

    async def _deliver_lines(self, container: RunContainer, token: str, places: asyncio.Semaphore) -> None:
        async with places:
            run = container.allocation_id
            process = await self._storage.ask(
                run,
                lambda: container.upload_orphans(token, address=self._address, note_late_lines=True),
            )
            self._senders.append(process)
            # The process also sends reports, which may take longer.
            while process.poll() is None and await self._storage.ask(run, container.spools.lines_wait):  # noqa: ASYNC110
                await asyncio.sleep(_LINES_POLL_SECONDS)

    async def release(self, allocation_id: str, *, token: str) -> None:
        """Forgets an allocation, and cleans up behind it in the background."""
        if await self._storage.ask(allocation_id, lambda: _mark(self._runs / allocation_id)):
            self._cleaners.start(allocation_id, self._clean(allocation_id, token))

    async def resume(self) -> None:
        """Goes on with what an earlier life of this process was to clean up."""
        for marker in await self._storage.ask("", lambda: list(self._runs.glob(f"*/{_RELEASED}"))):
            self._cleaners.start(marker.parent.name, self._clean(marker.parent.name, ""))

    def leftovers(self) -> list[str]:
        """Names every allocation of which something is on disk and which was not released."""
        # Their marks may go before their folders do.
        removed = self._cleaners.names
        folders = self._runs.iterdir() if self._runs.is_dir() else ()
        return [
            folder.name
            for folder in folders
            # A dot begins what runs share.
            if not folder.name.startswith(".")
            and folder.name not in removed
            and folder.is_dir()
            and not (folder / _RELEASED).exists()
        ]

    async def unreported(self) -> list[str]:
        """Names every allocation of which reports wait here that have not arrived."""
        return await self._storage.walk(self._look_for_reports)

    def _look_for_reports(self) -> list[str]:
        waiting = (
            container.run.path.parent.name
            for container in self._containers()
            if container.spools.reports_wait()
        )
        return sorted(set(waiting))

    async def seconds(self) -> float:
        """Returns for how long reports or lines of some run have waited here without any of them arriving."""
        with suppress(UnavailableError):
            # What was found last holds as long as the storage does not answer.
            await self._looking.outcome()
        return self._seconds

    async def _look(self) -> None:
        self._seconds = await self._storage.walk(self._look_at_backlog)

    def _look_at_backlog(self) -> float:
        spools = (spool for container in self._containers() for spool in container.spools.files())
        return self._stalled.look(spools, now=time.monotonic())

    def _containers(self) -> list[RunContainer]:
        folders = [folder.name for folder in self._runs.iterdir()] if self._runs.is_dir() else []
        return [container for name in folders for container in containers_in(self._runs, name)]

    async def close(self) -> None:
        """Ends the cleaning; the processes that send continue."""
        await self._cleaners.close()
        await self._looking.close()
        self.reap()
        for process in self._senders:
            # It outlives this process on purpose, and its object is not to complain about that.
            process.returncode = 0
        self._senders.clear()

    def reap(self) -> None:
        """Leaves no zombie of what has sent."""
        self._senders = [process for process in self._senders if process.poll() is None]

    async def _clean(self, allocation_id: str, token: str) -> None:
        """Waits for the end of an allocation's supervisors, sends what they left, and removes the rest."""
        folder = self._runs / allocation_id
        for container in await self._done(allocation_id, lambda: containers_in(self._runs, allocation_id)):
            await self._until_over(container)
            await self._until_delivered(container, token)
            await self._done(allocation_id, container.remove)
        await self._done(allocation_id, lambda: shutil.rmtree(folder, ignore_errors=True))

    async def _until_delivered(self, container: RunContainer, token: str) -> None:
        """Sends what a container left, again and again: a sender can be killed, or be another life's."""
        run = container.allocation_id
        backoff = Backoff(first=_FIRST_PAUSE_SECONDS, longest=_LONGEST_PAUSE_SECONDS)
        while await self._done(run, container.spools.undelivered):
            process = await self._done(run, lambda: container.upload_orphans(token, address=self._address))
            self._senders.append(process)
            while process.poll() is None:
                await wait_for_exit(ProcessIdentity.of(process.pid))
            # What the sender did not count as undelivered is torn and cannot be read.
            if process.returncode == 0:
                return
            _log.warning("a run's history still waits on disk", run=str(container.run.path))
            await asyncio.sleep(backoff.failed())

    async def _done(self, allocation_id: str, call: Callable[[], T]) -> T:
        """Makes a call about what an allocation left, again and again as long as the storage is away."""
        failures = LoggedBackoff(_log, "the storage of a run does not answer", run=allocation_id)
        clean = partial(self._storage.clean, allocation_id, call)
        return await until_it_succeeds(clean, failures, retried=(UnavailableError,))


def _mark(folder: Path) -> bool:
    """Marks the folder of an allocation as released; returns whether there is one."""
    if not folder.is_dir():
        return False
    (folder / _RELEASED).touch()
    return True
