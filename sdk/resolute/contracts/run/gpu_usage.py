"""What the GPUs of a run did, as their driver measured it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUsage:
    """Energy and work of GPUs."""

    energy_joules: float | None
    """None where the driver counts none."""
    busy_seconds: float
    """GPU-seconds in which they worked."""
    measured_seconds: float
    """GPU-seconds that were measured, the idle ones included."""

    @classmethod
    def from_json(cls, content: Mapping[str, Any] | None) -> GpuUsage | None:
        """Reads what ``dataclasses.asdict`` made; None for nothing.

        Raises:
            TypeError: It is something else.
        """
        return None if content is None else cls(**content)
