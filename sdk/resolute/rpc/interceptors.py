"""What every call of the SDK goes through: token, deadline, trace id, typed errors."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import grpc
from grpc_status import rpc_status

from resolute import errors
from resolute.contracts.calls.client_version import CLIENT_HEADER, own_header
from resolute.contracts.calls.error_status import from_status
from resolute.rpc.connection_causes import connection_cause, is_broken_connection

DEFAULT_DEADLINE = 10.0
"""Seconds that a call may take when its caller names no other limit."""
TRACE_HEADER = "x-resolute-trace"
"""Metadata key of the id that follows one run through every service."""


class CallDetails(NamedTuple):
    """``grpc.ClientCallDetails`` with the fields that grpcio itself reads."""

    method: str
    timeout: float | None
    metadata: list[tuple[str, str | bytes]] | None
    credentials: grpc.CallCredentials | None
    wait_for_ready: bool | None
    compression: grpc.Compression | None


class CallInterceptor(
    grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor, grpc.StreamUnaryClientInterceptor
):
    """Completes outgoing calls and raises typed errors for their failures.

    Streams of responses get no deadline of their own: a watch may last, and keepalive notices a dead peer.
    """

    def __init__(
        self,
        *,
        address: str,
        token: Callable[[], str] | None,
        trace_id: str,
        guard: Callable[[], None],
    ) -> None:
        self._address = address
        self._token = token
        self._trace_id = trace_id
        self._guard = guard

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        """Makes one call and waits for its answer."""
        call = continuation(self._complete(client_call_details, DEFAULT_DEADLINE), request)
        return self._checked(call, client_call_details.method)

    def intercept_stream_unary(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        """Makes one uploading call and waits for its answer."""
        call = continuation(self._complete(client_call_details, DEFAULT_DEADLINE), request_iterator)
        return self._checked(call, client_call_details.method)

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        """Starts one streaming call."""
        call = continuation(self._complete(client_call_details, None), request)
        return TypedStream(call, self._address)

    def _complete(self, details: Any, deadline: float | None) -> CallDetails:
        self._guard()
        metadata = list(details.metadata or [])
        metadata.append((TRACE_HEADER, self._trace_id or uuid.uuid4().hex))
        if own_header():
            metadata.append((CLIENT_HEADER, own_header()))
        token = self._token() if self._token else ""
        if token:
            metadata.append(("authorization", f"Bearer {token}"))
        timeout = deadline if details.timeout is None else details.timeout
        return CallDetails(
            details.method, timeout, metadata, details.credentials, details.wait_for_ready, None
        )

    def _checked(self, call: Any, method: str) -> Any:
        failure = call.exception()
        if failure is None:
            return call
        raise to_typed_error(failure, self._address) from failure


class TypedStream:
    """The responses of a streaming call, with typed errors. Iterate it, or ``cancel`` it."""

    def __init__(self, call: Any, address: str) -> None:
        self._call = call
        self._address = address

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._call)
        except grpc.RpcError as failure:
            raise to_typed_error(failure, self._address) from failure

    def cancel(self) -> None:
        """Ends the stream; anyone who iterates it gets ``UnavailableError``."""
        self._call.cancel()


def to_typed_error(failure: Any, address: str) -> errors.ResoluteError:
    """Turns a failed call into the error of ``resolute.errors`` that the service raised.

    Args:
        failure: What grpcio raised.
        address: Where the call went, for messages of an unreachable service.
    """
    status_name = failure.code().name
    details = failure.details() or status_name
    # Every failure that grpcio raises for a call is the call itself as well; its types do not say so.
    status = rpc_status.from_call(cast("grpc.Call", failure))
    if status is None:
        if is_broken_connection(status_name, details):
            status_name = "UNAVAILABLE"
        if status_name in {"UNAVAILABLE", "CANCELLED"}:
            cause = connection_cause(details) if status_name == "UNAVAILABLE" else "the call was cancelled"
            details = (
                f"cannot reach {address} ({cause}); check that it is running and that the address is right"
            )
        return errors.BY_STATUS.get(status_name, errors.InternalError)(details)
    return from_status(status, status_name=status_name)
