"""The ``resources`` section: what each trial runs on, and how urgent it is."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from resolute.contracts.documents.section import (
    ByteSize,
    Flag,
    Int,
    Json,
    Number,
    Section,
    SmallCount,
    Text,
)
from resolute.contracts.priorities import LEAST_PRIORITY
from resolute_experiments.config.sections.mounts import Devices
from resolute_experiments.config.sections.preemptible import Preemptible


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
