"""Bounds of the stored usage of a container's machine."""

from __future__ import annotations

from math import isinf

from resolute.api.experiments.v1.machine_usage_pb2 import MachineUsage
from resolute_serving.validation import invalid

_MAX_PERIODS = 500
_MAX_SERIES = 200
_MAX_NAME = 100
_LATEST = 1e11
"""Seconds from 1970 to some day in the year 5138, which all time zones can show."""


def check_machine_usage(usage: MachineUsage) -> None:
    """Checks the size and the shape of what a machine did.

    Raises:
        InvalidArgumentError: It has too much of something, lists of other lengths, or impossible numbers.
    """
    periods = len(usage.seconds)
    if periods > _MAX_PERIODS:
        raise invalid("usage.seconds", f"usage has {periods} periods; at most {_MAX_PERIODS} are kept")
    if len(usage.series) > _MAX_SERIES:
        raise invalid("usage.series", f"usage has {len(usage.series)} series; at most {_MAX_SERIES} are kept")
    if max(map(len, [usage.node, *(series.name for series in usage.series)])) > _MAX_NAME:
        raise invalid("usage.series", f"a name in usage has more than {_MAX_NAME} characters")
    if not 0 <= usage.start_time < _LATEST:
        raise invalid("usage.start_time", f"usage begins at {usage.start_time:g}, which is no Unix time")
    if not all(0 < length < _LATEST for length in usage.seconds):
        raise invalid("usage.seconds", "a period of usage is not longer than 0 seconds, or never ends")
    for series in usage.series:
        # Not a number stands for what was not measured; programs that read infinities cannot show them.
        if any(map(isinf, series.values)):
            raise invalid("usage.series", f"series {series.name!r} has an infinite value; leave it out")
        if len(series.values) != periods:
            raise invalid(
                "usage.series",
                f"series {series.name!r} has {len(series.values)} values for {periods} periods",
            )
