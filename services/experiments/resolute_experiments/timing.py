"""The time of a change, and the preemption timeout that applies to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """The time of a change, and the time for trials to checkpoint after it."""

    now: float
    """Unix seconds."""
    preemption_timeout: float
    """Seconds between a signal and the hard end of processes."""
