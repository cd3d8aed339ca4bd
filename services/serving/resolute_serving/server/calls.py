"""The interceptors of every call, outermost first: trace and log, errors, access, bounds."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import grpc
import structlog
from google.protobuf import any_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from resolute import errors
from resolute.contracts.calls.client_version import CLIENT_HEADER
from resolute.contracts.calls.deadlines import in_time
from resolute.contracts.tracing import Spans
from resolute_serving.auth.access_lookup import AccessLookup
from resolute_serving.auth.authorization import authorize
from resolute_serving.auth.call_access import CallAccess
from resolute_serving.auth.grants import current_grants
from resolute_serving.auth.refusals import client_address
from resolute_serving.auth.tokens import VerifiedToken
from resolute_serving.bounds.callers import AwaitedRequest, CallersCalls, caller_of
from resolute_serving.bounds.fair_steps import FairSteps
from resolute_serving.bounds.limits import limits_of
from resolute_serving.bounds.requests import RequestReader, own_message
from resolute_serving.context import (
    Anonymous,
    User,
    current_peer,
    current_principal,
    current_trace,
    new_trace,
)
from resolute_serving.observability.call_log import CallLog
from resolute_serving.observability.call_spans import send_call
from resolute_serving.observability.gauges import CallCounts
from resolute_serving.server.client_versions import ClientVersions
from resolute_serving.server.error_bounds import bounded_message, bounded_metadata, bounded_violations

UNREAD_SECONDS = 60.0
"""How long an answer of a stream may wait for its client."""
REQUEST_SECONDS = 10.0
"""Seconds that a call waits for its request if gRPC does not: that is so for strangers, and for callers with
many calls whose requests have not come."""
TRACE_HEADER = "x-resolute-trace"
_TRACE = re.compile(r"[\w.-]{1,64}", re.ASCII)
_log = structlog.get_logger("rpc")
_line = CallLog()


class Calls(grpc.GenericRpcHandler):
    """The calls of a server. It authenticates, authorizes, times and logs each; errors become statuses.

    Services add their handlers to it as to a server. Each handler is wrapped once, at its first call.

    Args:
        access: Authenticates callers.
        counts: Counts the calls.
        clients: Checks the versions of clients.
        lookups: Lookups of the roles of users and the workspaces of named objects, by gRPC service.
        spans: Receives a span for each call; None to send none.
    """

    def __init__(
        self,
        access: CallAccess,
        counts: CallCounts,
        clients: ClientVersions,
        *,
        lookups: Mapping[str, AccessLookup],
        spans: Spans | None = None,
    ) -> None:
        self._gate = _Gate(access, counts, clients, RequestReader(), CallersCalls(), FairSteps(), spans)
        self._lookups = lookups
        self._handlers: list[grpc.GenericRpcHandler] = []
        self._calls: dict[str, Call] = {}

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        """Takes the handlers of a service; called by the code that gRPC generates."""
        self._handlers += generic_rpc_handlers

    def add_registered_method_handlers(self, service_name: str, method_handlers: Any) -> None:
        """Takes nothing: the same handlers come by ``add_generic_rpc_handlers``."""

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """The wrapped handler of a call; None if there is none."""
        call = self.find(handler_call_details.method)
        if call is None:
            return None
        metadata = handler_call_details.invocation_metadata or ()
        header = next((value for name, value in metadata if name == "authorization"), "")
        token = self._gate.access.known(str(header))
        if token is None or call.streams_requests:
            return call.wary_handler
        awaited = self._gate.callers.await_request(caller_of(token.principal, ""))
        return call.wary_handler if awaited is None else call.handler(awaited)

    def find(self, method: str) -> Call | None:
        """A call by its full name, ``/package.Service/Method``; None if there is none."""
        call = self._calls.get(method)
        if call is None:
            details = _Details(method)
            found = (handlers.service(details) for handlers in self._handlers)
            handler = next((handler_ for handler_ in found if handler_ is not None), None)
            if handler is None:
                return None
            lookup = self._lookups.get(method.split("/")[1])
            call = self._calls[method] = Call(self._gate, method, handler, lookup=lookup)
        return call


@dataclass
class _Details:
    method: str
    invocation_metadata: tuple[tuple[str, str | bytes], ...] = ()


@dataclass(frozen=True)
class _Gate:
    """The parts that all calls of a server share."""

    access: CallAccess
    counts: CallCounts
    clients: ClientVersions
    reader: RequestReader
    callers: CallersCalls
    steps: FairSteps
    spans: Spans | None


class Call:
    """One call of the contract: a handler with its interceptors.

    Args:
        gate: The parts that all calls share.
        method: Full name of the method.
        handler: Handler of the service.
        lookup: Looks up the roles of users and the workspaces of named objects.
    """

    def __init__(self, gate: _Gate, method: str, handler: Any, *, lookup: AccessLookup | None) -> None:
        self._gate = gate
        self._method = method
        self._lookup = lookup
        self._limits = limits_of(method)
        self._deserialize = handler.request_deserializer
        self.streams_requests = bool(handler.request_streaming)
        """Whether its handler is called before there is a request."""
        self._single = handler.unary_unary or handler.stream_unary
        self._many = handler.unary_stream or handler.stream_stream
        # Requests come as bytes: they are read when their caller is known.
        self._serializer = handler.response_serializer
        self.wary_handler: grpc.RpcMethodHandler[Any, Any] = (
            grpc.stream_unary_rpc_method_handler(self.single, None, self._serializer)
            if self._many is None
            else grpc.stream_stream_rpc_method_handler(self.stream, None, self._serializer)
        )
        """What gRPC calls before there is a request: strangers, who may send none, are refused without
        waiting for it. It also serves streams of requests, and callers with many requests to come."""

    def handler(self, awaited: AwaitedRequest) -> grpc.RpcMethodHandler[Any, Any]:
        """What gRPC calls once the request is there.

        Args:
            awaited: The call, which lives as long as its handler.
        """
        if self._many is None:
            return grpc.unary_unary_rpc_method_handler(
                partial(self.single, awaited=awaited), None, self._serializer
            )
        return grpc.unary_stream_rpc_method_handler(
            partial(self.stream, awaited=awaited), None, self._serializer
        )

    async def single(self, data: Any, context: Any, *, awaited: AwaitedRequest | None = None) -> Any:
        """Answers a call with one response."""
        began = time.perf_counter()
        if awaited is not None:
            awaited.end()
        try:
            token = await self._enter(context)
            with self._counted():
                if self.streams_requests:
                    with self._gate.access.stream(token):
                        response = await self._in_turn(self._with_requests(data, context))
                else:
                    response = await self._in_turn(self._with_request(await request_of(data), context))
        except Exception as error:  # noqa: BLE001 - whatever a handler raises becomes a status
            refusal = self._refusal(error, began)
        else:
            self._done("OK", began)
            return response
        # gRPC keeps this frame with its call until the collector comes by: it names neither the request nor
        # the error, whose frames do.
        del data
        return await context.abort_with_status(refusal)

    async def stream(self, data: Any, context: Any, *, awaited: AwaitedRequest | None = None) -> None:
        """Answers a call with a stream of responses."""
        # It writes the responses itself, so that a write which waits for its client can be cancelled.
        began = time.perf_counter()
        if awaited is not None:
            awaited.end()
        refusal: Any = None
        try:
            token = await self._enter(context)
            with self._counted(), self._gate.access.stream(token):
                if self.streams_requests:
                    await self._in_turn(self._with_requests(data, context))
                else:
                    await self._in_turn(self._with_request(await request_of(data), context))
        except grpc.aio.InternalError:
            # So a write fails whose client is gone before gRPC cancels this call.
            self._done("CANCELLED", began)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises becomes a status
            refusal = self._refusal(error, began)
        else:
            self._done("OK", began)
        if refusal is not None:
            del data  # as above
            await context.abort_with_status(refusal)

    async def _enter(self, context: Any) -> VerifiedToken | None:
        """Notes who calls."""
        metadata = dict(context.invocation_metadata() or ())
        gate = self._gate
        gate.access.note_peer(metadata, direct=context.peer())
        trace = str(metadata.get(TRACE_HEADER, ""))
        current_trace.set(trace if _TRACE.fullmatch(trace) else new_trace())
        gate.clients.check(str(metadata.get(CLIENT_HEADER, "")))
        return await gate.access.authenticate(self._method, str(metadata.get("authorization", "")))

    def _counted(self) -> AbstractContextManager[None]:
        address = client_address(current_peer.get())
        return self._gate.callers.counted(caller_of(current_principal.get(), address))

    async def _in_turn(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Does what runs and services ask for at once, and what people do in turn."""
        principal = current_principal.get()
        if isinstance(principal, User):
            return await self._gate.steps.run(work, of=principal.name)
        if isinstance(principal, Anonymous):
            return await self._gate.steps.run(work, of=None)
        return await work

    async def _with_request(self, data: Any, context: Any) -> Any:
        """Reads the request, or takes a message of this process, checks it and calls the handler."""
        if isinstance(data, Message):
            return await self._answer(own_message(data, self._limits), context)
        with self._gate.reader.admit(len(data)):
            return await self._answer(
                await self._gate.reader.read(data, self._deserialize, self._limits), context
            )

    async def _answer(self, request: Any, context: Any) -> Any:
        await self._authorize(request)
        if self._single is not None:
            return await self._single(request, context)
        return await self._respond(self._many(request, context), context, request)

    async def _with_requests(self, data: Any, context: Any) -> Any:
        """Calls the handler with the messages of a stream as they come."""
        await self._authorize(None)
        messages = self._gate.reader.stream(data, self._deserialize, self._limits)
        async with aclosing(messages):
            if self._single is not None:
                return await self._single(messages, context)
            return await self._respond(self._many(messages, context), context, None)

    async def _respond(self, responses: Any, context: Any, request: Any) -> None:
        if not hasattr(responses, "__aiter__"):
            await responses  # health and reflection write to the context themselves
            return
        await _open(context)
        async with aclosing(responses):
            async for response in responses:
                if isinstance(current_principal.get(), User):
                    # A role may have been taken away since the call began.
                    await self._authorize(request)
                await _write(context, response)

    async def _authorize(self, request: Any) -> None:
        """Checks the request, or for calls that stream requests the call alone."""
        principal = current_principal.get()
        current_grants.set(await authorize(self._method, principal, request, lookup=self._lookup))

    def _refusal(self, error: Exception, began: float) -> Any:
        """Notes that a call failed; returns what its caller gets."""
        if not isinstance(error, errors.ResoluteError):
            correlation = uuid.uuid4().hex
            _log.exception("call failed by a defect", method=self._method, correlation_id=correlation)
            error = errors.InternalError(
                f"the service failed inside; its log has the cause under {correlation}",
                metadata={"correlation_id": correlation},
            )
        self._gate.access.note_refusal(self._method, error)
        self._done(error.status, began, detail=bounded_message(str(error)))
        return rpc_status.to_status(to_status(error))

    def _done(self, code: str, began: float, **facts: str) -> None:
        seconds = time.perf_counter() - began
        gate = self._gate
        gate.counts.add(self._method, code, seconds)
        _line.write(self._method, code, seconds, **facts)
        if gate.spans is not None:
            send_call(gate.spans, self._method, code, seconds)


async def request_of(data: Any) -> Any:
    """The request of a call that has one: it is there, or comes soon.

    Args:
        data: The request, or a stream of requests of which it is the first.

    Raises:
        DeadlineError: It does not.
        InvalidArgumentError: The call has none.
    """
    if hasattr(data, "__aiter__"):
        return await in_time(_first(data), REQUEST_SECONDS, "the request")
    return data


async def _first(requests: AsyncIterator[bytes]) -> bytes:
    # gRPC's reader and its stream name each other: where one is not closed, they keep the call, with what its
    # client has not read, until the collector comes by.
    async with aclosing(cast("AsyncGenerator[bytes, None]", aiter(requests))) as received:
        async for request in received:
            return request
    raise errors.InvalidArgumentError("the call has no request; send one, which may be empty")


async def _open(context: Any) -> None:
    """Tells the client of a stream that it is open, though news may be long in coming."""
    sending = asyncio.ensure_future(context.send_initial_metadata(()))
    try:
        await asyncio.shield(sending)
    except asyncio.CancelledError:
        # While it sends these, gRPC takes no status: the client would never learn why its stream ends.
        await sending
        raise


async def _write(context: Any, response: Any) -> None:
    """Sends an answer of a stream, to a client that reads.

    Raises:
        UnavailableError: It has read nothing for too long.
    """
    # Not by wait_for: before Python 3.12 it loses a cancellation that comes when the write has just ended.
    task, given_up = asyncio.current_task(), False
    assert task is not None

    def give_up() -> None:
        nonlocal given_up
        given_up = True
        task.cancel()

    timer = asyncio.get_running_loop().call_later(UNREAD_SECONDS, give_up)
    try:
        await context.write(response)
    except asyncio.CancelledError:
        if not given_up:
            raise
        raise errors.UnavailableError(
            f"the client read nothing for {UNREAD_SECONDS:.0f} seconds; call again, from what came last"
        ) from None
    finally:
        timer.cancel()


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
