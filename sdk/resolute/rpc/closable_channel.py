"""A channel that refuses calls after it was closed; on grpcio's own they crash the process (SIGSEGV)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

from resolute.errors import ClosedConnectionError


class ClosableChannel(grpc.Channel):
    """A channel that refuses calls once it is closed.

    Generated stubs ask to register their methods with grpcio's channel; this class does not do so. That
    registration crashes on a closed channel, even if another thread closes it at the same moment.

    Args:
        channel: The channel of grpcio, which no other code uses.
        address: Address of the server, for messages.
    """

    def __init__(self, channel: grpc.Channel, *, address: str) -> None:
        self._channel = channel
        self._address = address
        self._closed = False

    def check(self) -> None:
        """Fails once the channel is closed.

        Raises:
            ClosedConnectionError: It is.
        """
        if self._closed:
            raise ClosedConnectionError(
                f"the connection to {self._address} was closed by this process; make the call before that, "
                "or open another connection"
            )

    def close(self) -> None:
        """Closes the channel, whether it is closed or not; calls that are under way end."""
        self._closed = True
        self._channel.close()

    def subscribe(self, callback: Callable[[Any], None], try_to_connect: bool = False) -> None:
        """Has a callback hear of changes of the connection."""
        self._channel.subscribe(callback, try_to_connect)

    def unsubscribe(self, callback: Callable[[Any], None]) -> None:
        """Ends that."""
        self._channel.unsubscribe(callback)

    def unary_unary(
        self, method: str, serialize: Any = None, deserialize: Any = None, _registered_method: bool = False
    ) -> Any:
        """Makes what calls a method of one request and one response."""
        return self._channel.unary_unary(method, serialize, deserialize)

    def unary_stream(
        self, method: str, serialize: Any = None, deserialize: Any = None, _registered_method: bool = False
    ) -> Any:
        """Makes what calls a method of one request and many responses."""
        return self._channel.unary_stream(method, serialize, deserialize)

    def stream_unary(
        self, method: str, serialize: Any = None, deserialize: Any = None, _registered_method: bool = False
    ) -> Any:
        """Makes what calls a method of many requests and one response."""
        return self._channel.stream_unary(method, serialize, deserialize)

    def stream_stream(
        self, method: str, serialize: Any = None, deserialize: Any = None, _registered_method: bool = False
    ) -> Any:
        """Makes what calls a method of many requests and many responses."""
        return self._channel.stream_stream(method, serialize, deserialize)
