"""Bounds of what is kept of the machine of a container."""

from __future__ import annotations

from resolute.api.experiments.v1.machine_usage_pb2 import MachineUsage
from resolute_serving.validation import invalid

_MAX_PERIODS = 500
_MAX_SERIES = 200
_MAX_NAME = 100


def check_machine_usage(usage: MachineUsage) -> None:
    """Checks the size and the shape of what a machine did.

    Raises:
        InvalidArgumentError: It has too much of something, or lists of other lengths.
    """
    periods = len(usage.seconds)
    if periods > _MAX_PERIODS:
        raise invalid("usage.seconds", f"usage has {periods} periods; at most {_MAX_PERIODS} are kept")
    if len(usage.series) > _MAX_SERIES:
        raise invalid("usage.series", f"usage has {len(usage.series)} series; at most {_MAX_SERIES} are kept")
    if max(map(len, [usage.node, *(one.name for one in usage.series)])) > _MAX_NAME:
        raise invalid("usage.series", f"a name in usage has more than {_MAX_NAME} characters")
    for one in usage.series:
        if len(one.values) != periods:
            raise invalid(
                "usage.series", f"series {one.name!r} has {len(one.values)} values for {periods} periods"
            )
