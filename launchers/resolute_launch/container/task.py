"""A container's part of a run, as everything that works on it needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import grpc

from resolute.api.experiments.v1.launch_spec_pb2 import LaunchSpec
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.times import seconds_of
from resolute.contracts.values import to_mapping
from resolute_launch.control_plane.client import ControlPlane
from resolute_launch.control_plane.outage_timeout import OutageTimeout


@dataclass(frozen=True)
class Task:
    """What is to be run, on which slots, in which directory."""

    spec: LaunchSpec
    """What the control plane wants to be run."""
    order: LaunchOrder
    """What the resource manager said of this machine."""
    run: RunDirectory
    """The run directory."""

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The experiment's config."""
        return to_mapping(self.spec.config)

    @property
    def term_grace_seconds(self) -> float:
        """Seconds between SIGTERM and SIGKILL: those of the config, else those of the machine."""
        if self.spec.HasField("termination_grace"):
            return seconds_of(self.spec.termination_grace)
        return self.order.term_grace_seconds

    @property
    def alone(self) -> bool:
        """Whether the run has this one container only."""
        return self.spec.container_count <= 1

    @property
    def distributed(self) -> bool:
        """Whether the run has several workers: several containers, or several slots in its only one."""
        return not self.alone or len(self.order.slot_ids) > 1


@dataclass(frozen=True)
class ControlPlaneConnection:
    """The way to the control plane."""

    channel: grpc.Channel
    """Stays open for as long as the supervisor lives."""
    control: ControlPlane
    """Its calls."""
    outage_timeout: OutageTimeout
    """How long it may be away."""
