"""Runs whose launch fails with an unexpected error. The launch is retried for a bounded time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from resolute.contracts.clock import Clock

LONGEST_SECONDS = 30.0
"""For so long the launch of a run may fail of something unexpected, such as a defect of an engine."""


@dataclass(frozen=True)
class _Failing:
    since: float
    reason: str


class FailingLaunches:
    """The errors of failing launches, and the times since which they fail.

    Args:
        engine: Name of the engine, for messages.
        clock: Measures how long a launch has failed.
    """

    def __init__(self, engine: str, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._failing: dict[str, _Failing] = {}

    def reason(self, allocation_id: str) -> str:
        """Says of what the launch of an allocation fails; empty if it does not."""
        failing = self._failing.get(allocation_id)
        if failing is None:
            return ""
        return f"its launch by engine {self._engine} fails and is tried again: {failing.reason}"

    def add(self, allocation_id: str, failure: Exception) -> str:
        """Notes that a launch failed.

        Returns:
            With what the run has failed, once that went on for long enough; empty before.
        """
        now = self._clock.monotonic()
        known = self._failing.get(allocation_id)
        failing = _Failing(known.since if known else now, f"{type(failure).__name__}: {failure}")
        self._failing[allocation_id] = failing
        seconds = now - failing.since
        if seconds < LONGEST_SECONDS:
            return ""
        return f"engine {self._engine} failed at it for {seconds:.0f} seconds: {failing.reason}"

    def remove(self, allocation_id: str) -> None:
        """Notes that a launch succeeded."""
        self._failing.pop(allocation_id, None)

    def keep(self, live: Collection[str]) -> None:
        """Forgets all allocations but those."""
        self._failing = {name: failing for name, failing in self._failing.items() if name in live}
