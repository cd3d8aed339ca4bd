"""The usage of the machines of runs, as plain immutable values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timezone

from resolute.api.experiments.v1.trials_service_pb2 import GetMachineUsageResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineUsage:
    """The usage of one container's machine: means over consecutive periods; older periods are longer."""

    container_rank: int
    node: str
    """Name of the machine."""
    start_time: datetime
    """When the first period began."""
    seconds: tuple[float, ...]
    """How long each period is."""
    series: dict[str, tuple[float | None, ...]]
    """The means of each period by name, such as ``cpu``; None where nothing was measured."""

    def mean(self, name: str, *, seconds: float = math.inf) -> float | None:
        """The mean of a value over the last seconds, at least the last period; None if not known."""
        total = weight = age = 0.0
        for length, value in zip(reversed(self.seconds), reversed(self.series.get(name, ())), strict=False):
            if age and age + length > seconds:
                break
            age += length
            if value is not None:
                total, weight = total + value * length, weight + length
        return total / weight if weight else None


def machine_usage(container: GetMachineUsageResponse.Container) -> MachineUsage:
    """Converts what the machine of one container did."""
    usage = container.usage
    return MachineUsage(
        container_rank=container.container_rank,
        node=usage.node,
        start_time=datetime.fromtimestamp(usage.start_time, timezone.utc),
        seconds=tuple(usage.seconds),
        series={
            series.name: tuple(None if math.isnan(value) else value for value in series.values)
            for series in usage.series
        },
    )
