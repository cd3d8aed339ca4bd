"""Detects GPUs that are almost idle."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_PARTS = 60
"""The time over which GPUs are measured has so many parts, which are forgotten one by one."""
_GAP_SECONDS = 60.0
"""Without a reading for so long the machine or the supervisor stood still: nothing is known of that time."""
_IN_SECONDS = 120.0
"""Shorter times are shown in seconds."""


@dataclass(frozen=True, slots=True)
class UtilizationPolicy:
    """The section ``utilization_policy`` of a config."""

    below: float
    """Idle are GPUs that work for less than this share of the time: 0 to 1."""
    seconds: float
    """The time over which that is measured."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> UtilizationPolicy | None:
        """Reads the section of a config; None without one."""
        section = config.get("utilization_policy")
        return None if not section else cls(section["gpu_below"] / 100, float(section["over"]))


@dataclass(slots=True)
class _Part:
    seconds: float = 0.0
    measured: float = 0.0
    busy: float = 0.0


class Idleness:
    """Reports when GPUs become idle, and when they work again.

    Args:
        policy: The required utilisation.
        report: Called at each change: with a text for people when GPUs become idle, and with an empty one
            when they work again.
    """

    def __init__(self, policy: UtilizationPolicy, *, report: Callable[[str], None]) -> None:
        self._policy, self._report = policy, report
        self._parts: deque[_Part] = deque()
        self._idle = False

    def add(self, seconds: float, *, measured: float, busy: float) -> None:
        """Takes what they did since the last call.

        Args:
            seconds: The time since then.
            measured: The seconds of which it is known, of all GPUs together.
            busy: Those of them in which they worked.
        """
        length = self._policy.seconds / _PARTS
        if seconds > max(_GAP_SECONDS, length):
            self._parts.clear()
            return
        if not self._parts or self._parts[-1].seconds >= length:
            self._parts.append(_Part())
        part = self._parts[-1]
        part.seconds += seconds
        part.measured += measured
        part.busy += busy
        known = sum(span.seconds for span in self._parts)
        while known - self._parts[0].seconds >= self._policy.seconds:
            known -= self._parts.popleft().seconds
        if known >= self._policy.seconds:
            self._judge(known)

    def _judge(self, seconds: float) -> None:
        measured = sum(part.measured for part in self._parts)
        share = sum(part.busy for part in self._parts) / measured if measured else None
        idle = share is not None and share < self._policy.below
        if idle != self._idle:
            self._idle = idle
            self._report(_sentence(share or 0.0, self._policy, seconds=seconds) if idle else "")


def _sentence(share: float, policy: UtilizationPolicy, *, seconds: float) -> str:
    time = f"{seconds:.0f} seconds" if seconds < _IN_SECONDS else f"{seconds / 60:.0f} minutes"
    limit = f"{100 * policy.below:g} %"
    return f"its GPUs worked for {100 * share:.1f} % of the last {time}, below the limit of {limit}"
