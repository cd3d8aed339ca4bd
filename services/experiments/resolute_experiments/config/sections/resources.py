"""The ``resources`` section: what each trial runs on, and how urgent it is."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema

from resolute_experiments.config.sections.mounts import Devices
from resolute_experiments.config.sections.preemptible import Preemptible
from resolute_experiments.config.validation.rejections import reject
from resolute_experiments.config.validation.section import (
    INT64,
    Flag,
    Int,
    Json,
    Number,
    Section,
    SmallCount,
    Text,
)

DEFAULT_PRIORITY = 42
"""Priority of experiments that name none; 1 is the most urgent."""
LEAST_PRIORITY = 99
"""The least urgent one."""
_SIZE = re.compile(r"(?P<number>(?:[0-9]*\.)?[0-9]+) ?(?:(?P<prefix>[kmgtp])(?:i?b)?|b)?", re.IGNORECASE)
_PREFIXES = " kmgtp"


def _bytes(value: Any) -> int:
    """Read a size in bytes; k, M, G, T, P are powers of 1024, with or without the i."""
    size: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (match := _SIZE.fullmatch(value)):
        exact = float(match["number"]) * 1024 ** _PREFIXES.index((match["prefix"] or " ").lower())
        size = int(exact) if math.isfinite(exact) else None
    if size is None or not 0 <= size <= INT64[1]:
        raise reject('a number of bytes, or a size such as "4 GiB"')
    return size


ByteSize: TypeAlias = Annotated[int, PlainValidator(_bytes), WithJsonSchema({"type": ["integer", "string"]})]
"""A number of bytes, written as such or like ``"4 GiB"``."""


class Resources(Section):
    """What a trial needs.

    Attributes:
        slots_per_trial: Slots of each trial; 0 is a trial that needs none.
        max_slots: Most slots that the whole experiment may hold; None is no limit.
        weight: Share of the experiment among others, under fair-share scheduling.
        priority: Urgency from 1 (most) to 99; None takes the cluster's default.
        resource_pool: Pool to run in; empty takes the default.
        shm_size: Bytes of shared memory of a container.
        devices: Devices given to the container.
        is_single_node: Whether all slots of a trial must be on one node.
        preemptible: Whether machines may be taken away, and how they say so.
        native_parallel: Of old configs; ignored.
        agent_label: Of old configs; ignored.
    """

    slots_per_trial: SmallCount = 1
    max_slots: SmallCount | None = None
    weight: Annotated[Number, Field(gt=0)] = 1
    priority: Annotated[Int, Field(ge=1, le=LEAST_PRIORITY)] | None = None
    resource_pool: Text = ""
    shm_size: ByteSize | None = None
    devices: Devices = ()
    is_single_node: Flag | None = None
    preemptible: Preemptible = Preemptible(enabled=False)
    native_parallel: Flag | None = None
    agent_label: Json | None = None
