"""Pulls images for allocations in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

import structlog

from resolute.contracts.calls.backoff import Backoff
from resolute.contracts.calls.logged_backoff import LoggedBackoff, until_it_succeeds
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.run.exit_record import ExitRecord
from resolute.errors import QuotaError, UnavailableError
from resolute_engines.container.images.names import UnpulledImageError
from resolute_engines.kit.named_tasks import NamedTasks
from resolute_engines.protocol import ContainerReport, ContainerState

_LONGEST_PAUSE_SECONDS = 60.0
"""Between two attempts to pull an image whose registry or engine does not answer."""
_log = structlog.get_logger("container")


@dataclass(kw_only=True)
class _Waiting:
    containers: int
    reason: str


class Pulls:
    """Pulls images for allocations, and then starts their containers.

    Args:
        tell: Receives the states of containers in the meantime.
        kill: Ends the started containers of an allocation.
        timeout: Seconds for which a registry may be unavailable.
        clock: Measures the timeout.
    """

    def __init__(
        self,
        *,
        tell: Callable[[ContainerReport], None],
        kill: Callable[[str], Awaitable[None]],
        timeout: float,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._tell = tell
        self._kill = kill
        self._timeout = timeout
        self._clock = clock
        self._tasks = NamedTasks("container-pull")
        self._waiting: dict[str, _Waiting] = {}

    def begin(
        self, allocation_id: str, *, containers: int, reason: str, launch: Callable[[], Awaitable[None]]
    ) -> None:
        """Begins to pull for an allocation; one that waits already goes on.

        Args:
            allocation_id: The allocation.
            containers: How many it has.
            reason: Why they wait, for people.
            launch: Pulls the image and starts the containers. It is repeated while something does not answer,
                and, within the timeout, while the image cannot be pulled.
        """
        if allocation_id not in self._waiting:
            self._waiting[allocation_id] = _Waiting(containers=containers, reason="")
            self.say(allocation_id, reason)
            self._tasks.start(allocation_id, self._launch(allocation_id, launch))

    def say(self, allocation_id: str, reason: str) -> None:
        """Says what an allocation waits for now."""
        waiting = self._waiting.get(allocation_id)
        if waiting is not None and waiting.reason != reason:
            waiting.reason = reason
            self._tell(self._starting(allocation_id, 0))

    def reports(self, allocation_id: str, *, there: Collection[int]) -> list[ContainerReport]:
        """Tells of the containers of an allocation that wait.

        Args:
            allocation_id: The allocation.
            there: Ranks of those that the engine has.
        """
        return [self._starting(allocation_id, rank) for rank in self._missing(allocation_id, there)]

    def withdraw(self, allocation_id: str, *, there: Collection[int]) -> None:
        """Ends the waiting of an allocation: of what the engine does not have nothing ran.

        Args:
            allocation_id: The allocation.
            there: Ranks of those that the engine has.
        """
        for rank in self._missing(allocation_id, there):
            self._ended(allocation_id, rank, ExitRecord.withdrawn())
        self.forget(allocation_id)

    def forget(self, allocation_id: str) -> None:
        """Ends the waiting of an allocation without an event."""
        self._waiting.pop(allocation_id, None)
        self._tasks.cancel(allocation_id)

    async def close(self) -> None:
        """Ends all waiting."""
        await self._tasks.close()

    async def _launch(self, allocation_id: str, launch: Callable[[], Awaitable[None]]) -> None:
        backoff = LoggedBackoff(
            _log, "an image is not there yet", longest=_LONGEST_PAUSE_SECONDS, allocation=allocation_id
        )
        unpulled = Backoff(clock=self._clock)
        while True:
            try:
                await launch()
            except Exception as failure:  # noqa: BLE001 - whatever it is, the trial must hear of it instead of waiting for ever
                if self._may_pass(failure, unpulled):
                    self.say(allocation_id, str(failure))
                    await asyncio.sleep(backoff.failed(failure))
                    continue
                await self._fail(allocation_id, failure)
            self._waiting.pop(allocation_id, None)
            return

    def _may_pass(self, failure: Exception, unpulled: Backoff) -> bool:
        if isinstance(failure, UnpulledImageError):
            unpulled.failed()
            return unpulled.failing_seconds < self._timeout
        return isinstance(failure, (UnavailableError, QuotaError))

    async def _fail(self, allocation_id: str, failure: Exception) -> None:
        """Ends an allocation that cannot be started, with those of its containers that have begun."""
        for rank in self._missing(allocation_id, ()):
            self._ended(allocation_id, rank, ExitRecord.failed_launch(failure))
        backoff = LoggedBackoff(_log, "a run could not be ended", allocation=allocation_id)
        await until_it_succeeds(lambda: self._kill(allocation_id), backoff)

    def _missing(self, allocation_id: str, there: Collection[int]) -> list[int]:
        waiting = self._waiting.get(allocation_id)
        return [rank for rank in range(waiting.containers if waiting else 0) if rank not in there]

    def _starting(self, allocation_id: str, rank: int) -> ContainerReport:
        return ContainerReport(
            allocation_id=allocation_id,
            container_rank=rank,
            state=ContainerState.STARTING,
            reason=self._waiting[allocation_id].reason,
        )

    def _ended(self, allocation_id: str, rank: int, record: ExitRecord) -> None:
        self._tell(
            ContainerReport(
                allocation_id=allocation_id,
                container_rank=rank,
                state=ContainerState.ENDED,
                exit=record,
                reason=record.failure,
            )
        )
