"""Released allocations: in the background, their unsent data is sent, then they are removed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog

from resolute.contracts.calls.backoff import Backoff
from resolute.contracts.calls.logged_backoff import LoggedBackoff, until_it_succeeds
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.errors import FailedPreconditionError, QuotaError, UnavailableError
from resolute_engines.container.client import DockerApi
from resolute_engines.container.containers import Containers, ListedContainer
from resolute_engines.kit.named_tasks import NamedTasks

_LONGEST_PAUSE_SECONDS = 60.0
"""Between two attempts to send what a run left."""
_START_SECONDS = 20.0
"""What a container that sends lines may take to start."""
_log = structlog.get_logger("container")


class Send(Protocol):
    """Sends the data that an ended container left."""

    async def __call__(self, container: ListedContainer, token: str, *, note_late_lines: bool) -> bool:
        """Sends it, with a token; returns whether everything has arrived."""


class ContainerReleases:
    """The released allocations that still have containers or volumes on the daemon.

    Args:
        api: The daemon.
        containers: The containers of allocations.
        send: Sends the data that an ended container left, with a token; returns whether everything has
            arrived.
        outage_timeout: Seconds for which sending is retried during an outage of the services.
        log_wait: Seconds for which the end of a run waits until the logs service has stored the last lines.
        clock: Measures the timeout.
    """

    def __init__(
        self,
        api: DockerApi,
        containers: Containers,
        *,
        send: Send,
        outage_timeout: float,
        log_wait: float,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._api = api
        self._containers = containers
        self._send = send
        self._timeout = outage_timeout + _START_SECONDS
        self._log_wait = log_wait
        self._clock = clock
        self._tasks = NamedTasks("container-release")
        self._names: set[str] = set()
        self._undelivered: dict[str, float] = {}
        """Since when some of them could not be sent and removed; monotonic seconds."""

    def __contains__(self, allocation_id: str) -> bool:
        """Whether something is still there of an allocation that was released."""
        return allocation_id in self._names

    async def deliver_lines(self, tokens: Mapping[str, str]) -> bool:
        """Sends, for a bounded time, the lines of lost supervisors; the others have sent theirs."""
        lost = [
            (container, token)
            for allocation_id, token in tokens.items()
            for container in await self._containers.of(allocation_id)
            if container.ended and await self._containers.lost(container)
        ]
        if not lost:
            return True
        sending = [
            asyncio.create_task(
                self._send(container, token, note_late_lines=True), name=f"container-lines-{container.name}"
            )
            for container, token in lost
        ]
        try:
            await asyncio.wait(sending, timeout=self._log_wait + _START_SECONDS)
        finally:
            for task in sending:
                # The container of a late one goes on.
                task.cancel()
            answers = await asyncio.gather(*sending, return_exceptions=True)
        return all(answer is True for answer in answers)

    async def unreported(self) -> Sequence[str]:
        """Names every allocation that was released and of which something is still there."""
        return sorted(self._names)

    async def seconds(self) -> float:
        """For how long something could not be sent."""
        now = self._clock.monotonic()
        return max((now - since for since in self._undelivered.values()), default=0.0)

    def release(self, allocation_id: str, *, token: str) -> None:
        """Sends what an allocation left, and removes it, in the background."""
        self._names.add(allocation_id)
        self._tasks.start(allocation_id, self._remove(allocation_id, token))

    async def close(self) -> None:
        """Ends the removing; what sends goes on."""
        await self._tasks.close()

    async def _remove(self, allocation_id: str, token: str) -> None:
        backoff = LoggedBackoff(
            _log, "a run cannot be removed yet", longest=_LONGEST_PAUSE_SECONDS, allocation=allocation_id
        )
        refused = Backoff(clock=self._clock)

        async def removed() -> None:
            try:
                await self._send_or_give_up(allocation_id, token, refused)
                await self._containers.remove(allocation_id)
            except Exception:
                self._undelivered.setdefault(allocation_id, self._clock.monotonic())
                raise

        await until_it_succeeds(removed, backoff)
        self._undelivered.pop(allocation_id, None)
        self._names.discard(allocation_id)

    async def _send_or_give_up(self, allocation_id: str, token: str, refused: Backoff) -> None:
        try:
            await self._send_rest(allocation_id, token)
        except (UnavailableError, QuotaError):
            # What waits for the engine has not been tried.
            raise
        except Exception as failure:
            refused.failed()
            if refused.failing_seconds < self._timeout:
                raise
            _log.warning(
                "what a run left could not be sent, and is removed",
                allocation=allocation_id,
                reason=str(failure),
            )

    async def _send_rest(self, allocation_id: str, token: str) -> None:
        for container in await self._containers.of(allocation_id):
            if container.running:
                await self._api.until_stopped(container.name)
            if not container.unbegun and not await self._send(container, token, note_late_lines=False):
                raise FailedPreconditionError(f"what {container.name} left could not be sent")
