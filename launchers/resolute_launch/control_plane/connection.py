"""The connection of a supervisor to the control plane."""

from __future__ import annotations

from dataclasses import dataclass

import grpc

from resolute_launch.control_plane.client import ControlPlane
from resolute_launch.control_plane.outage_timeout import OutageTimeout


@dataclass(frozen=True)
class ControlPlaneConnection:
    """A channel, the calls over it, and the outage timeout."""

    channel: grpc.Channel
    """Open for as long as the supervisor lives."""
    control: ControlPlane
    """The calls of this container."""
    outage_timeout: OutageTimeout
    """Measures how long the control plane has been away."""
