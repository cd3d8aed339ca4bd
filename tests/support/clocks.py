"""Clocks that stand still until a test moves them."""

from __future__ import annotations

import asyncio

from support.waiting import wait_until_async

from resolute.contracts.clock import SystemClock


class ManualClock:
    """Returns the time that it was told.

    Args:
        now: Seconds since 1970 to begin with.
    """

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now

    def time(self) -> float:
        """Seconds since 1970."""
        return self._now

    def monotonic(self) -> float:
        """The same seconds."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self._now += seconds


class ManualSleep:
    """Takes the place of a long sleep: each pause lasts until the test ends it."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        """How long each pause so far was meant to be."""
        self._ends = asyncio.Semaphore(0)

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self._ends.acquire()

    async def end(self) -> None:
        """Ends the pause of the moment, and waits for the next one."""
        count = len(self.asked)
        self._ends.release()
        await wait_until_async(lambda: len(self.asked) > count)


class OffsetClock(SystemClock):
    """The machine's clocks, with a time of day that tests set."""

    def __init__(self) -> None:
        self._offset = 0.0

    def time(self) -> float:
        """Seconds since 1970, as far as the clock was not set."""
        return super().time() + self._offset

    def jump(self, seconds: float) -> None:
        """Sets the time of day. The machine's uptime goes on as if nothing had happened."""
        self._offset += seconds


class JumpingClock(ManualClock):
    """A clock whose time of day and uptime are set apart, as by a person or by a suspend of the machine."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        super().__init__(now)
        self._offset = 0.0

    def time(self) -> float:
        """Seconds since 1970, as far as the clock was not set."""
        return super().time() + self._offset

    def jump(self, seconds: float) -> None:
        """Sets the time of day. The machine's uptime goes on as if nothing had happened."""
        self._offset += seconds

    def jump_uptime(self, seconds: float) -> None:
        """Lets uptime pass alone, as when a process was stopped and the clock was then set back."""
        self.advance(seconds)
        self.jump(-seconds)
