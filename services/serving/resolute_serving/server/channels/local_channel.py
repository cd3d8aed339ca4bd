"""A channel to the services of this process: a stub's calls reach their handlers without a connection.

A call passes the same checks as one over a connection: token, permission, bounds, log, metrics, trace. Its
request is copied, not serialized; its response is the object that the handler returned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, NoReturn

import grpc
from google.protobuf.message import Message
from google.rpc import status_pb2

from resolute import errors
from resolute.contracts.calls.deadlines import in_time
from resolute.contracts.calls.error_status import from_status
from resolute.contracts.calls.retries import Retries
from resolute_serving.context import current_trace, new_trace
from resolute_serving.server.calls import TRACE_HEADER, Call, Calls

_WAITING_RESPONSES = 16
"""Responses of a stream that wait for its reader."""
_RICH_STATUS = "grpc-status-details-bin"


class LocalChannel:
    """A channel that calls handlers of this process. It has the methods that stubs use.

    Args:
        calls: The calls that this process serves.
        wire: Channel over loopback, for calls with request streams.
        token: Returns the token of each call.
        deadline: Default time limit of a call, in seconds.
    """

    def __init__(
        self, calls: Calls, wire: grpc.aio.Channel, *, token: Callable[[], str], deadline: float
    ) -> None:
        self._calls = calls
        self._token = token
        self._deadline = deadline
        self.stream_unary = wire.stream_unary
        self.stream_stream = wire.stream_stream

    def unary_unary(self, method: str, *_: Any, **__: Any) -> Callable[..., Any]:
        """Makes what a stub calls for one response."""

        async def call(request: Message, *, timeout: float | None = None) -> Any:
            retries = Retries(self._deadline if timeout is None else timeout)
            while True:
                context = _Context(self._metadata(), retries.seconds_left)
                try:
                    return await in_time(
                        self._find(method).single(request, context), context.time_remaining(), method
                    )
                except errors.ResoluteError as failure:
                    pause = retries.pause_after(failure.status)
                    if pause is None:
                        raise
                await asyncio.sleep(pause)

        return call

    def unary_stream(self, method: str, *_: Any, **__: Any) -> Callable[..., LocalStream]:
        """Makes what a stub calls for a stream of responses."""

        def call(request: Message, *, timeout: float | None = None) -> LocalStream:
            context = _Context(self._metadata(), timeout)
            serving = in_time(self._find(method).stream(request, context), timeout, method)
            return LocalStream(serving, context)

        return call

    def _find(self, method: str) -> Call:
        call = self._calls.find(method)
        if call is None:
            raise errors.UnimplementedError(
                f"no service of this process answers {method}; start the one that does"
            )
        return call

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        trace = current_trace.get() or new_trace()
        return (TRACE_HEADER, trace), ("authorization", f"Bearer {self._token()}")


class LocalStream:
    """The responses of one call.

    Args:
        serving: Runs the handler.
        context: Context of the handler.
    """

    def __init__(self, serving: Coroutine[Any, Any, Any], context: _Context) -> None:
        self._context = context
        self._task = asyncio.create_task(serving, name="local-stream")
        self._task.add_done_callback(lambda _: context.end())

    def __aiter__(self) -> AsyncIterator[Any]:
        """The responses that are left."""
        return self._read()

    def cancel(self) -> bool:
        """Ends the call; returns whether it had not ended before."""
        return self._task.cancel()

    async def _read(self) -> AsyncIterator[Any]:
        try:
            while (response := await self._context.next_response()) is not None:
                yield response
            await self._task
        finally:
            self._task.cancel()


class _Context:
    """The context of a handler: the part of gRPC's context that handlers use."""

    def __init__(self, metadata: tuple[tuple[str, str], ...], timeout: float | None) -> None:
        self._metadata = metadata
        self._ends = None if timeout is None else time.monotonic() + timeout
        self._responses: asyncio.Queue[Any] = asyncio.Queue()
        self._room = asyncio.Semaphore(_WAITING_RESPONSES)

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        """What came with the call."""
        return self._metadata

    def peer(self) -> str:
        """This process."""
        return "local"

    def time_remaining(self) -> float | None:
        """Seconds until the deadline; None without one."""
        return None if self._ends is None else max(self._ends - time.monotonic(), 0.0)

    async def send_initial_metadata(self, metadata: Any) -> None:
        """Sends nothing: the reader is there."""

    async def write(self, response: Any) -> None:
        """Sends a response of a stream; waits for a reader who is slow."""
        await self._room.acquire()
        self._responses.put_nowait(response)

    async def next_response(self) -> Any:
        """Waits for a response; None after the last."""
        response = await self._responses.get()
        self._room.release()
        return response

    def end(self) -> None:
        """Lets the reader know that no response follows."""
        self._responses.put_nowait(None)

    async def abort_with_status(self, status: Any) -> NoReturn:
        """Ends the call with an error: the one that its caller would get over the wire.

        Raises:
            ResoluteError: Always.
        """
        rich = status_pb2.Status.FromString(dict(status.trailing_metadata)[_RICH_STATUS])
        raise from_status(rich, status_name=status.code.name)
