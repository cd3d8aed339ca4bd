"""Assembles the preemption service."""

from __future__ import annotations

from collections.abc import Sequence

import grpc

from resolute.api.preemption.v1.preemption_service_pb2_grpc import add_PreemptionServiceServicer_to_server
from resolute_preemption.latest_signals import LatestSignals
from resolute_preemption.servicer import PreemptionServicer
from resolute_preemption.settings import PreemptionSettings
from resolute_preemption.signal_follower import SignalFollower
from resolute_serving.observability.gauges import Gauge
from resolute_serving.server.service import Environment


class PreemptionService:
    """Broadcasts signals to the watchers of allocations.

    Args:
        environment: The parameters of every service.
        settings: Settings of this service.
    """

    name = "preemption"
    """Short name."""
    grpc_names: Sequence[str] = ("resolute.api.preemption.v1.PreemptionService",)
    """Full names of its gRPC services."""

    def __init__(self, environment: Environment, *, settings: PreemptionSettings) -> None:
        self.access_lookup = environment.access_lookup
        self.signals = LatestSignals(heartbeat=settings.heartbeat, clock=environment.clock)
        """The signals as they are known here."""
        self._signal_follower = SignalFollower(
            peers=environment.peers, signals=self.signals, settings=settings
        )

    def register(self, server: grpc.aio.Server) -> None:
        """Adds its handler to a server that has not started."""
        add_PreemptionServiceServicer_to_server(PreemptionServicer(self.signals), server)

    async def gauges(self) -> Sequence[Gauge]:
        """Returns the number of watchers."""
        return [
            Gauge(
                name="resolute_signal_watchers",
                help="Watches that wait for the next signal of an allocation.",
                value=self.signals.watchers,
            )
        ]

    async def start(self) -> None:
        """Begins to follow the experiments service."""
        self._signal_follower.start()

    async def stop(self) -> None:
        """Ends every watch, then the stream that it follows."""
        self.signals.close()
        await self._signal_follower.stop()
