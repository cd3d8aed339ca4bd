"""What every call passes before its handler: trace and log, errors, access, bounds. Outermost first."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import grpc
import structlog
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from resolute import errors
from resolute.contracts.calls.client_version import CLIENT_HEADER
from resolute.contracts.tracing import Spans
from resolute_serving.auth.access_lookup import AccessLookup
from resolute_serving.auth.authorization import authorize
from resolute_serving.auth.call_access import CallAccess
from resolute_serving.auth.grants import current_grants
from resolute_serving.auth.open_streams import OpenStreams
from resolute_serving.auth.refusals import Refusals
from resolute_serving.auth.tokens import TokenVerifier, VerifiedToken
from resolute_serving.bounds.limits import limits_of
from resolute_serving.bounds.requests import RequestReader
from resolute_serving.context import User, current_principal, current_trace
from resolute_serving.observability.call_log import CallLog
from resolute_serving.observability.call_spans import send_call
from resolute_serving.observability.gauges import CallCounts
from resolute_serving.server.client_versions import ClientVersions
from resolute_serving.server.error_bounds import bounded_message, bounded_metadata, bounded_violations

TRACE_HEADER = "x-resolute-trace"
_TRACE = re.compile(r"[\w.-]{1,64}", re.ASCII)
_log = structlog.get_logger("rpc")
_calls = CallLog()


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Authenticates, authorizes, times and logs each call, and turns errors into statuses.

    Args:
        verifier: Tells who a token speaks for.
        calls: Counts the calls.
        clients: Knows which clients are too old.
        lookups: Know the roles of users and the workspaces of what calls name, by gRPC service.
        streams: Ends open streams with their tokens.
        refusals: Counts what is refused, for the audit log.
        spans: Takes a span for each call; None where none are sent.
    """

    def __init__(
        self,
        verifier: TokenVerifier,
        calls: CallCounts,
        clients: ClientVersions,
        *,
        lookups: Mapping[str, AccessLookup],
        streams: OpenStreams,
        refusals: Refusals,
        spans: Spans | None = None,
    ) -> None:
        self._spans = spans
        self._access = CallAccess(verifier, streams=streams, refusals=refusals)
        self._calls = calls
        self._clients = clients
        self._lookups = lookups
        self._reader = RequestReader()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Wraps the handler of a method, if there is one."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return handler
        method = handler_call_details.method
        lookup = self._lookups.get(method.split("/")[1])
        call = _Call(
            self._access,
            self._calls,
            self._clients,
            lookup,
            method,
            self._reader,
            handler,
            spans=self._spans,
        )
        # Requests come as bytes: they are read when their caller is known.
        codecs = {"request_deserializer": None, "response_serializer": handler.response_serializer}
        if handler.unary_unary:
            return grpc.unary_unary_rpc_method_handler(call.single(handler.unary_unary), **codecs)
        if handler.stream_unary:
            return grpc.stream_unary_rpc_method_handler(
                call.single(handler.stream_unary, streams_requests=True), **codecs
            )
        if handler.unary_stream:
            return grpc.unary_stream_rpc_method_handler(call.stream(handler.unary_stream), **codecs)
        return grpc.stream_stream_rpc_method_handler(
            call.stream(handler.stream_stream, streams_requests=True), **codecs
        )


class _Call:
    def __init__(
        self,
        access: CallAccess,
        calls: CallCounts,
        clients: ClientVersions,
        lookup: AccessLookup | None,
        method: str,
        reader: RequestReader,
        handler: Any,
        *,
        spans: Spans | None,
    ) -> None:
        self._spans = spans
        self._access = access
        self._calls = calls
        self._clients = clients
        self._lookup = lookup
        self._method = method
        self._reader = reader
        self._deserialize = handler.request_deserializer
        self._limits = limits_of(method)

    def single(self, handler: Any, *, streams_requests: bool = False) -> Any:
        async def handle(data: Any, context: Any) -> Any:
            began = time.perf_counter()
            try:
                async with self._entered(data, context, streams_requests=streams_requests) as request:
                    response = await handler(request, context)
            except Exception as error:  # noqa: BLE001 - whatever a handler raises becomes a status
                await self._fail(error, context, began)
            else:
                self._done("OK", began)
                return response

        return handle

    def stream(self, handler: Any, *, streams_requests: bool = False) -> Any:
        # It writes the responses itself, so that a write which waits for its client can be cancelled.
        async def handle(data: Any, context: Any) -> None:
            began = time.perf_counter()
            try:
                entered = self._entered(
                    data, context, streams_requests=streams_requests, streams_responses=True
                )
                async with entered as request:
                    responses = handler(request, context)
                    if hasattr(responses, "__aiter__"):
                        # Its client learns that the stream is open, though news may be long in coming.
                        await context.send_initial_metadata(())
                        async with aclosing(responses):
                            async for response in responses:
                                if isinstance(current_principal.get(), User):
                                    # A role may have been taken away since the call began.
                                    await self._authorize(None if streams_requests else request)
                                await context.write(response)
                    else:
                        await responses  # health and reflection write to the context themselves
            except grpc.aio.InternalError:
                # So a write fails whose client is gone before gRPC cancels this call.
                self._done("CANCELLED", began)
            except Exception as error:  # noqa: BLE001 - whatever a handler raises becomes a status
                await self._fail(error, context, began)
            else:
                self._done("OK", began)

        return handle

    @asynccontextmanager
    async def _entered(
        self, data: Any, context: Any, *, streams_requests: bool, streams_responses: bool = False
    ) -> AsyncIterator[Any]:
        """Lets a call in, and gives its request: a message, or the messages of a stream as they come."""
        token = await self._enter(context)
        if streams_requests:
            await self._authorize(None)
            messages = self._reader.stream(data, self._deserialize, self._limits)
            with self._access.stream(token):
                async with aclosing(messages):
                    yield messages
            return
        with self._reader.admit(len(data)):
            request = await self._reader.read(data, self._deserialize, self._limits)
            await self._authorize(request)
            with self._access.stream(token if streams_responses else None):
                yield request

    async def _enter(self, context: Any) -> VerifiedToken | None:
        metadata = dict(context.invocation_metadata() or ())
        trace = str(metadata.get(TRACE_HEADER, ""))
        current_trace.set(trace if _TRACE.fullmatch(trace) else uuid.uuid4().hex)
        self._clients.check(str(metadata.get(CLIENT_HEADER, "")))
        return await self._access.authenticate(self._method, str(metadata.get("authorization", "")))

    async def _authorize(self, request: Any) -> None:
        """Checks the request, or for calls that stream requests the call alone."""
        principal = current_principal.get()
        current_grants.set(await authorize(self._method, principal, request, lookup=self._lookup))

    async def _fail(self, error: Exception, context: Any, began: float) -> None:
        if not isinstance(error, errors.ResoluteError):
            correlation = uuid.uuid4().hex
            _log.exception("call failed by a defect", method=self._method, correlation_id=correlation)
            error = errors.InternalError(
                f"the service failed inside; its log has the cause under {correlation}",
                metadata={"correlation_id": correlation},
            )
        self._access.note_refusal(self._method, error, peer=context.peer())
        self._done(error.status, began, detail=bounded_message(str(error)))
        await context.abort_with_status(rpc_status.to_status(to_status(error)))

    def _done(self, code: str, began: float, **facts: str) -> None:
        seconds = time.perf_counter() - began
        self._calls.add(self._method, code, seconds)
        _calls.write(self._method, code, seconds, **facts)
        if self._spans is not None:
            send_call(self._spans, self._method, code, seconds)


def to_status(error: errors.ResoluteError) -> status_pb2.Status:
    """Builds the ``google.rpc.Status`` of an error, with its reason, metadata and violations."""
    metadata = bounded_metadata(error.metadata)
    if error.resource:
        metadata["resource"] = error.resource
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=errors.DOMAIN, metadata=metadata)
    details = [_packed(info)]
    if error.violations:
        violations = [
            error_details_pb2.BadRequest.FieldViolation(field=v.field, description=v.description)
            for v in bounded_violations(error.violations)
        ]
        details.append(_packed(error_details_pb2.BadRequest(field_violations=violations)))
    code = grpc.StatusCode[error.status].value[0]
    return status_pb2.Status(code=code, message=bounded_message(str(error)), details=details)


def _packed(message: Any) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed
