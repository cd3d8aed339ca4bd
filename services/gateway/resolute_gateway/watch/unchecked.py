"""Serves the gateway's own call on its gRPC server, which neither checks tokens nor converts errors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
from grpc_status import rpc_status

from resolute.api.gateway.v1 import gateway_service_pb2 as pb
from resolute.errors import InvalidArgumentError, ResoluteError
from resolute_gateway.rpc.sign_in import SignInCheck
from resolute_gateway.watch.service import GatewayServicer
from resolute_serving.bounds.limits import limits_of
from resolute_serving.bounds.requests import read_message
from resolute_serving.server.calls import to_status

_WATCH = "/resolute.api.gateway.v1.GatewayService/Watch"


class UncheckedWatch(grpc.GenericRpcHandler):
    """Answers Watch. The watched services check the token.

    Args:
        servicer: Answers valid requests.
        sign_in: Distinguishes unauthenticated callers from callers with an invalid request.
    """

    def __init__(self, servicer: GatewayServicer, sign_in: SignInCheck) -> None:
        self._servicer = servicer
        self._sign_in = sign_in

    def service(self, handler_call_details: Any) -> Any:
        """The handler of Watch; None for other calls."""
        if handler_call_details.method != _WATCH:
            return None
        return grpc.unary_stream_rpc_method_handler(
            self._watch, response_serializer=pb.WatchResponse.SerializeToString
        )

    async def _watch(self, data: bytes, context: Any) -> AsyncIterator[pb.WatchResponse]:
        try:
            request = await self._read(data, context)
            async for response in self._servicer.Watch(request, context):
                yield response
        except ResoluteError as error:
            await context.abort_with_status(rpc_status.to_status(to_status(error)))
        except grpc.aio.AioRpcError as failure:
            await context.abort(failure.code(), failure.details() or "")

    async def _read(self, data: bytes, context: Any) -> pb.WatchRequest:
        try:
            request: pb.WatchRequest = read_message(data, pb.WatchRequest.FromString, limits_of(_WATCH))
        except InvalidArgumentError:
            await self._sign_in.check(_WATCH, list(context.invocation_metadata() or ()))
            raise
        return request
