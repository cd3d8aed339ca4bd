"""One call of the contract over HTTP: forwards the request to its service, and the response to the client."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc
import structlog
from connectrpc.errors import ConnectError
from connectrpc.request import RequestContext
from google.protobuf.descriptor import MethodDescriptor

from resolute.contracts.calls.deadlines import in_time
from resolute.contracts.calls.methods import path_of
from resolute.errors import InternalError, ResoluteError, UnimplementedError
from resolute_gateway.rpc.encoded import Encoded
from resolute_gateway.rpc.failures import from_call, from_error
from resolute_gateway.rpc.json_conversion import INLINE_BYTES, JsonConversion, check_marks
from resolute_gateway.rpc.open_streams import OpenStreams
from resolute_gateway.rpc.sign_in import Metadata, SignInCheck, claimed_caller
from resolute_gateway.web.callers import current_caller
from resolute_serving.auth.forwarded_peers import PEER_HEADER, ForwardedPeers
from resolute_serving.bounds.limits import limits_of
from resolute_serving.server.calls import TRACE_HEADER

DEFAULT_DEADLINE = 60.0
"""Seconds that a call with one answer, and the reading of any request, may take when its caller names no
other limit."""
_PASSED_PREFIX = "x-resolute-"
_log = structlog.get_logger("gateway")


class Procedure:
    """Makes one RPC, in either encoding.

    Args:
        method: The RPC.
        channel: Channel to its service.
        conversion: Converts messages of JSON callers.
        sign_in: Refuses unauthenticated callers before a large message is converted.
        streams: The open streams, to which new ones are added.
        peers: Names the caller to the service.
    """

    def __init__(
        self,
        method: MethodDescriptor,
        channel: grpc.aio.Channel,
        *,
        conversion: JsonConversion,
        sign_in: SignInCheck,
        streams: OpenStreams,
        peers: ForwardedPeers,
    ) -> None:
        self._method = method
        self._conversion = conversion
        self._sign_in = sign_in
        self._streams = streams
        self._peers = peers
        path = path_of(method)
        # Without serializers: bytes go in, and come out.
        self._unary: Any = channel.unary_unary(path)
        self._stream: Any = channel.unary_stream(path)

    async def unary(self, request: Encoded, context: RequestContext[Any, Any]) -> Encoded:
        """Makes a call with one answer."""
        try:
            seconds = _seconds(context)
            answering = self._answer(request.taken(), self._metadata(context), seconds)
            return await in_time(answering, seconds, self._method.full_name)
        except Exception as error:  # noqa: BLE001 - whatever fails becomes an error of the protocol
            failure = self._failure(error)
        # Here, where it has no context: the protocol library keeps it for long, and the frames of what caused
        # it name the request.
        raise failure

    async def _answer(self, request: Encoded, metadata: Metadata, seconds: float) -> Encoded:
        ends = time.monotonic() + seconds
        data = await self._binary(request, metadata)
        answer = await self._unary(data, metadata=metadata, timeout=max(0.0, ends - time.monotonic()))
        return await self._encoded(answer, metadata, json=request.json)

    async def server_stream(
        self, request: Encoded, context: RequestContext[Any, Any]
    ) -> AsyncIterator[Encoded]:
        """Makes a call with a stream of answers, which ends with its caller."""
        try:
            async with aclosing(self._answers(request.taken(), context)) as answers:
                async for answer in answers:
                    yield answer
            return
        except Exception as error:  # noqa: BLE001 - whatever fails becomes an error of the protocol
            failure = self._failure(error)
        raise failure  # as above

    async def _answers(
        self, request: Encoded, context: RequestContext[Any, Any]
    ) -> AsyncGenerator[Encoded, None]:
        metadata = self._metadata(context)
        reading = self._binary(request, metadata)
        data = await in_time(reading, _seconds(context), self._method.full_name)
        call = self._stream(data, metadata=metadata, timeout=_timeout(context))
        with self._streams.opened(call):
            async for answer in call:
                yield await self._encoded(answer, metadata, json=request.json)

    async def client_stream(self, requests: object, context: RequestContext[Any, Any]) -> Encoded:
        """Refuses a call that streams its requests."""
        raise from_error(
            UnimplementedError(f"{self._method.name} streams its request; make this call over gRPC")
        )

    async def _binary(self, request: Encoded, metadata: Metadata) -> bytes:
        if not request.json:
            return request.data
        path = path_of(self._method)
        check_marks(request.data, limits_of(path))
        caller = ""
        if len(request.data) > INLINE_BYTES:
            caller = await self._sign_in.check(path, metadata)
        return await self._conversion.to_binary(request.data, self._method.input_type, caller=caller)

    async def _encoded(self, data: bytes, metadata: Metadata, *, json: bool) -> Encoded:
        if json:
            caller = claimed_caller(metadata) if len(data) > INLINE_BYTES else ""
            data = await self._conversion.to_json(data, self._method.output_type, caller=caller)
        return Encoded(data, json=json)

    def _metadata(self, context: RequestContext[Any, Any]) -> Metadata:
        """What services read of a request, with a trace id, which the response names too."""
        headers = context.request_headers
        passed = [(name, value) for name, value in headers.allitems() if _is_passed_on(name)]
        passed.extend(self._peers.metadata(current_caller.get()))
        trace = headers.get(TRACE_HEADER)
        if not trace:
            trace = uuid.uuid4().hex
            passed.append((TRACE_HEADER, trace))
        context.response_headers[TRACE_HEADER] = trace
        return passed

    def _failure(self, error: Exception) -> ConnectError:
        if isinstance(error, ConnectError):
            return error
        if isinstance(error, grpc.aio.AioRpcError):
            return from_call(error)
        if isinstance(error, ResoluteError):
            return from_error(error)
        correlation = uuid.uuid4().hex
        _log.exception("call failed by a defect", method=self._method.full_name, correlation_id=correlation)
        return from_error(
            InternalError(f"the gateway failed inside; its log has the cause under {correlation}")
        )


def _seconds(context: RequestContext[Any, Any]) -> float:
    timeout = _timeout(context)
    return DEFAULT_DEADLINE if timeout is None else timeout


def _timeout(context: RequestContext[Any, Any]) -> float | None:
    return None if context.timeout_ms is None else max(0.0, context.timeout_ms / 1000)


def _is_passed_on(name: str) -> bool:
    if name == "authorization":
        return True
    return name.startswith(_PASSED_PREFIX) and not name.endswith("-bin") and name != PEER_HEADER
