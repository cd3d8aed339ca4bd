"""The usage of a run's GPUs, as measured by their driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_MOST = 1e15
"""More joules and seconds than any run has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUsage:
    """The energy and the utilisation of GPUs."""

    energy_joules: float | None
    """None where the driver counts none."""
    busy_seconds: float
    """GPU-seconds in which they worked."""
    measured_seconds: float
    """GPU-seconds that were measured, the idle ones included."""

    @classmethod
    def parse(cls, content: object) -> GpuUsage | None:
        """Reads what ``dataclasses.asdict`` made; None for nothing.

        Raises:
            ValueError: It is something else, or has amounts that are none.
        """
        if content is None:
            return None
        if not isinstance(content, Mapping):
            raise ValueError("the usage of GPUs is not an object")  # noqa: TRY004  # the caller knows of damage as ValueError
        amounts = {name: content.get(name) for name in ("energy_joules", "busy_seconds", "measured_seconds")}
        for name, amount in amounts.items():
            unknown = amount is None and name == "energy_joules"
            # NaN is in no range.
            if not unknown and not (type(amount) in (int, float) and 0 <= amount <= _MOST):  # type: ignore[operator]
                raise ValueError(f"{name} of GPUs is {amount!r:.100}")
        return cls(**amounts)  # type: ignore[arg-type]
