"""The gateway's own gRPC service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc

from resolute.api.gateway.v1 import gateway_service_pb2 as pb
from resolute.api.gateway.v1 import gateway_service_pb2_grpc as rpc
from resolute_gateway.watch.merged import MergedWatches
from resolute_serving.server.service import Blueprint, Environment

_PASSED = ("authorization", "x-resolute-")


class GatewayServicer(rpc.GatewayServiceServicer):
    """Answers calls of the contract.

    Args:
        watches: Opens merged watches.
    """

    def __init__(self, watches: MergedWatches) -> None:
        self._watches = watches

    async def Watch(self, request: pb.WatchRequest, context: Any) -> AsyncIterator[pb.WatchResponse]:  # noqa: N802
        """Sends the news of several services."""
        metadata = [
            (key, value) for key, value in context.invocation_metadata() or () if key.startswith(_PASSED)
        ]
        async for response in self._watches.watch(request, metadata):
            yield response


class GatewayService:
    """Merges watches of the services of a cluster.

    Args:
        environment: The parameters of every service.
    """

    name = "gateway"
    """Short name."""
    grpc_names: Sequence[str] = ("resolute.api.gateway.v1.GatewayService",)
    """Full names of its gRPC services."""

    def __init__(self, environment: Environment) -> None:
        self.access_lookup = environment.access_lookup
        self._watches = MergedWatches(environment.peers.channel_for_callers)

    def register(self, server: grpc.aio.Server) -> None:
        """Adds its handler to a server that has not started."""
        rpc.add_GatewayServiceServicer_to_server(GatewayServicer(self._watches), server)

    async def start(self) -> None:
        """Has nothing to do in the background."""

    async def stop(self) -> None:
        """Ends every watch."""
        self._watches.close()


BLUEPRINT = Blueprint(name="gateway", package="", create=GatewayService)
"""The gateway's own service. It owns no database."""
