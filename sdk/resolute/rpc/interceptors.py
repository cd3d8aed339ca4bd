"""The interceptors of every call of the SDK: token, deadline, trace id, typed errors."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import grpc
from grpc_status import rpc_status

from resolute import errors
from resolute.contracts.calls.client_version import CLIENT_HEADER, own_header
from resolute.contracts.calls.error_status import from_status
from resolute.contracts.calls.retries import Retries
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

    Streams of responses get no deadline: a watch has no time limit, and keepalive detects a lost peer.
    """

    def __init__(
        self,
        *,
        address: str,
        token: Callable[[], str] | None,
        trace_id: str,
        guards: Sequence[Callable[[], None]],
    ) -> None:
        self._address = address
        self._token = token
        self._trace_id = trace_id
        self._guards = guards

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        """Makes one call and waits for its answer."""
        retries = Retries(_timeout_of(client_call_details, DEFAULT_DEADLINE))
        while True:
            call = continuation(self._complete(client_call_details, retries.seconds_left), request)
            failure = _failure_of(call)
            if failure is None:
                return call
            pause = retries.pause_after(failure.code().name)
            if pause is None:
                raise to_typed_error(failure, self._address) from None
            time.sleep(pause)

    def intercept_stream_unary(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        """Makes one uploading call and waits for its answer."""
        # What was read of the requests cannot be sent again: only the caller can begin anew.
        timeout = _timeout_of(client_call_details, DEFAULT_DEADLINE)
        call = continuation(self._complete(client_call_details, timeout), request_iterator)
        failure = _failure_of(call)
        if failure is not None:
            raise to_typed_error(failure, self._address) from None
        return call

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        """Starts one streaming call."""
        retries = Retries(client_call_details.timeout)
        return TypedStream(
            lambda: continuation(self._complete(client_call_details, retries.seconds_left), request),
            retries,
            address=self._address,
        )

    def _complete(self, details: Any, timeout: float | None) -> CallDetails:
        for guard in self._guards:
            guard()
        metadata = list(details.metadata or [])
        metadata.append((TRACE_HEADER, self._trace_id or uuid.uuid4().hex))
        if own_header():
            metadata.append((CLIENT_HEADER, own_header()))
        token = self._token() if self._token else ""
        if token:
            metadata.append(("authorization", f"Bearer {token}"))
        return CallDetails(
            details.method, timeout, metadata, details.credentials, details.wait_for_ready, None
        )


def _failure_of(call: Any) -> Any:
    """How a call failed; None if it did not.

    Raises:
        ValueError: The channel was closed as the call began.
    """
    failure = call.exception()
    if isinstance(failure, ValueError):
        raise failure
    return failure


def _timeout_of(details: Any, default: float) -> float:
    return default if details.timeout is None else float(details.timeout)


class TypedStream:
    """The responses of a streaming call, with typed errors. Iterate it, or ``cancel`` it.

    Args:
        start: Starts the call. It is repeated until the first response or the last attempt.
        retries: Counts the attempts.
        address: Address of the server, for messages.
    """

    def __init__(self, start: Callable[[], Any], retries: Retries, *, address: str) -> None:
        self._start = start
        self._retries = retries
        self._address = address
        self._answered = False
        self._lock = threading.Lock()
        self._cancelled = threading.Event()
        self._call = start()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while True:
            try:
                response = next(self._call)
            except grpc.RpcError as failure:
                pause = None if self._answered else self._retries.pause_after(failure.code().name)
                if pause is None or self._cancelled.wait(pause) or not self._begin_again():
                    raise to_typed_error(failure, self._address) from None
            else:
                self._answered = True
                return response

    def cancel(self) -> None:
        """Ends the stream; anyone who iterates it gets ``UnavailableError``."""
        with self._lock:
            self._cancelled.set()
            self._call.cancel()

    def _begin_again(self) -> bool:
        with self._lock:
            if self._cancelled.is_set():
                return False
            self._call = self._start()
            return True


def to_typed_error(failure: Any, address: str) -> errors.ResoluteError:
    """Turns a failed call into the error of ``resolute.errors`` that the service raised.

    Args:
        failure: What grpcio raised; the context of the error. Raise the error ``from None``: tracebacks of
            scripts then show the message, which says all of it, and not the status of grpcio as well.
        address: Where the call went, for messages of an unreachable service.
    """
    error = _typed(failure, address)
    error.__context__ = failure
    return error


def _typed(failure: Any, address: str) -> errors.ResoluteError:
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
        elif status_name == "DEADLINE_EXCEEDED":
            details = f"{address} did not answer in time; see whether its machine is overloaded, then repeat"
        return errors.BY_STATUS.get(status_name, errors.InternalError)(details)
    return from_status(status, status_name=status_name)
