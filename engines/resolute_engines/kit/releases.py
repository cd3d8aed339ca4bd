"""Releases allocations whose engine sends their remaining data: waits for that, then removes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from resolute.contracts.calls.backoff import Backoff
from resolute.contracts.calls.logged_backoff import LoggedBackoff, until_found
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute_engines.kit.named_tasks import NamedTasks

_POLL_SECONDS = 0.25
_SEND_SECONDS = 20.0
"""What sending may take to begin."""
_LONGEST_PAUSE_SECONDS = 15.0
"""Between two looks at what is being removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftoverContainer:
    """A leftover container of an allocation."""

    ended: bool
    """Whether nothing of its run lives."""
    over: bool
    """Whether nothing of it sends any more either."""
    sent: bool
    """Whether all that it left was sent."""
    sends: bool
    """Whether it may still send: one in which nothing began has nothing to send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftoverContainers:
    """The leftover containers of an allocation."""

    ended: bool
    """Whether nothing of it runs, and nothing of it will."""
    parts: tuple[LeftoverContainer, ...]
    """Its containers, as far as they are there."""


class Allocations(Protocol):
    """The calls by which an engine's leftovers of allocations are read and removed."""

    async def leftover_containers(self, allocation_id: str) -> LeftoverContainers | None:
        """What is left of an allocation; None if nothing is.

        Raises:
            UnavailableError: The engine does not answer.
        """

    async def kill(self, allocation_id: str) -> None:
        """Ends an allocation."""

    async def delete(self, allocation_id: str) -> None:
        """Removes all of an allocation."""


class Releases:
    """The released allocations.

    Args:
        engine: Type of the engine, for the log and for names of tasks.
        allocations: The engine's leftovers of allocations.
        outage_timeout: Seconds for which containers keep trying to send during an outage of the services.
        log_wait: Seconds for which the end of a run waits until the logs service has stored the last lines.
        forget: Called when an allocation is removed completely.
    """

    def __init__(
        self,
        engine: str,
        allocations: Allocations,
        *,
        outage_timeout: float,
        log_wait: float,
        forget: Callable[[str], None],
    ) -> None:
        self._engine = engine
        self._allocations = allocations
        self._outage_timeout = outage_timeout
        self._log_wait = log_wait
        self._forget = forget
        self._tasks = NamedTasks(f"{engine}-release")
        self._log = structlog.get_logger(engine)
        self._since: dict[str, float] = {}
        """When each that is still there was released; monotonic seconds."""

    def __contains__(self, allocation_id: str) -> bool:
        """Whether something is still there of an allocation that was released."""
        return allocation_id in self._since

    async def unreported(self) -> Sequence[str]:
        """Names every allocation that was released and of which something is still there."""
        return sorted(self._since)

    async def seconds(self) -> float:
        """For how long the one that was released first has been sending."""
        now = SYSTEM_CLOCK.monotonic()
        return max((now - since for since in self._since.values()), default=0.0)

    def release(self, allocation_id: str) -> None:
        """Removes an allocation in the background, once its containers have sent what it left."""
        self._since.setdefault(allocation_id, SYSTEM_CLOCK.monotonic())
        self._tasks.start(allocation_id, self._remove(allocation_id))

    async def deliver_lines(self, tokens: Mapping[str, str]) -> bool:
        """Waits, for a bounded time, until the lines were sent of containers that have ended.

        They send by themselves, with their own tokens.
        """
        if not tokens:
            return True
        sending = [
            asyncio.create_task(self._until_sent(allocation_id), name=f"{self._engine}-lines-{allocation_id}")
            for allocation_id in tokens
        ]
        try:
            await asyncio.wait(sending, timeout=self._log_wait + _SEND_SECONDS)
        finally:
            for task in sending:
                task.cancel()
            answers = await asyncio.gather(*sending, return_exceptions=True)
        return all(answer is True for answer in answers)

    async def close(self) -> None:
        """Ends the removing; what sends goes on."""
        await self._tasks.close()

    async def _until_sent(self, allocation_id: str) -> bool:
        while True:
            leftover_containers = await self._allocations.leftover_containers(allocation_id)
            # What went with its machine arrives no more, however long one waits.
            ended = [part for part in leftover_containers.parts if part.ended] if leftover_containers else []
            if all(part.over for part in ended):
                return all(part.sent for part in ended)
            await asyncio.sleep(_POLL_SECONDS)

    async def _remove(self, allocation_id: str) -> None:
        failures = LoggedBackoff(
            self._log, "a run cannot be removed yet", longest=_LONGEST_PAUSE_SECONDS, allocation=allocation_id
        )

        async def removed() -> bool | None:
            return await self._removed(allocation_id) or None

        await until_found(removed, failures, pauses=Backoff(longest=_LONGEST_PAUSE_SECONDS))
        self._since.pop(allocation_id, None)
        self._forget(allocation_id)

    async def _removed(self, allocation_id: str) -> bool:
        leftover_containers = await self._allocations.leftover_containers(allocation_id)
        if leftover_containers is None:
            return True
        if not leftover_containers.ended:
            await self._allocations.kill(allocation_id)
            return False
        if not self._in_vain(allocation_id) and any(part.sends for part in leftover_containers.parts):
            return False
        await self._allocations.delete(allocation_id)
        return True

    def _in_vain(self, allocation_id: str) -> bool:
        waited = SYSTEM_CLOCK.monotonic() - self._since[allocation_id]
        if waited < self._outage_timeout + _SEND_SECONDS:
            return False
        self._log.warning("what a run left could not be sent, and is removed", allocation=allocation_id)
        return True
