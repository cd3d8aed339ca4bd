"""Checks a service's disks, one of which may not answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from resolute.contracts.clock import Clock
from resolute_serving.observability.disk_forecast import DiskForecast
from resolute_serving.observability.disks import full_disks


@dataclass(frozen=True, slots=True)
class DiskProblems:
    """The problems of disks, for people."""

    now: Sequence[str] = ()
    """Disks that are full or do not answer."""
    soon: Sequence[str] = ()
    """Disks that will be full."""


@dataclass(slots=True)
class _Question:
    at: float
    answer: Future[DiskProblems] = field(default_factory=Future)


class AskedDisks:
    """Checks the disks in a thread: if the server of a mount has stopped, the caller waits for ever.

    There is one thread at a time, for all callers.

    Args:
        paths: The directories to which the service writes.
        clock: Measures the time of an answer.
        full: Returns the full disks.
        seconds: Seconds to wait for an answer.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        *,
        clock: Clock,
        full: Callable[[Iterable[Path]], list[str]] = full_disks,
        seconds: float = 5.0,
    ) -> None:
        self._paths = tuple(paths)
        self._clock, self._full, self._seconds = clock, full, seconds
        self._forecast = DiskForecast(self._paths, clock=clock)
        self._question: _Question | None = None

    async def problems(self) -> DiskProblems:
        """Returns what is wrong; that the disks do not answer, if they do not within the time."""
        question = self._question
        if question is None or question.answer.done():
            question = self._question = _Question(self._clock.monotonic())
            threading.Thread(target=self._ask, args=(question.answer,), name="disks", daemon=True).start()
        waited = self._clock.monotonic() - question.at
        answer = asyncio.wrap_future(question.answer)
        await asyncio.wait({answer}, timeout=max(0.0, self._seconds - waited))
        if answer.done():
            return answer.result()
        names, ago = ", ".join(map(str, self._paths)), self._clock.monotonic() - question.at
        problem = (
            f"the disks of {names} do not all answer (asked {ago:.0f} seconds ago): look for a mount there "
            "whose server stopped, and bring it back or unmount it"
        )
        return DiskProblems(now=(problem,))

    def _ask(self, answer: Future[DiskProblems]) -> None:
        try:
            answer.set_result(DiskProblems(now=self._full(self._paths), soon=self._forecast.problems()))
        except Exception as failure:  # noqa: BLE001 - it is raised where somebody waits for the answer
            answer.set_exception(failure)
