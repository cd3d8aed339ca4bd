"""Channels to the services: options, retries, deadlines, tokens, and checks for use after a fork or close."""

from __future__ import annotations

import os
from collections.abc import Callable

import grpc

from resolute.contracts.calls.keepalive import KEEPALIVE_OPTIONS
from resolute.contracts.calls.message_sizes import MAX_ANSWER_BYTES
from resolute.contracts.calls.tls import ClientTls, blocking_channel
from resolute.errors import ForkedProcessError
from resolute.rpc.closable_channel import ClosableChannel
from resolute.rpc.interceptors import CallInterceptor

TokenSource = Callable[[], str]
"""Gives the token for the next call; asked for every call, because tokens are renewed while channels live."""

CHANNEL_OPTIONS: tuple[tuple[str, str | int], ...] = (
    *KEEPALIVE_OPTIONS,
    ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # A proxy from the environment would see loopback traffic and tokens.
    ("grpc.enable_http_proxy", 0),
)
"""Options of every channel, synchronous or not."""


def open_channel(
    address: str,
    *,
    token: TokenSource | None = None,
    tls: ClientTls | None = None,
    trace_id: str = "",
) -> grpc.Channel:
    """Opens a channel whose calls carry a token and a deadline and raise the errors of ``resolute.errors``.

    Args:
        address: ``host:port``.
        token: Gives the token of each call; None for calls that need none.
        tls: Whom it trusts; None for a plain port on this host.
        trace_id: Follows a run through every service; a fresh one a call when empty.

    Returns:
        A channel that refuses to be used in a forked child, and after it was closed.
    """
    channel = ClosableChannel(blocking_channel(address, tls=tls, options=CHANNEL_OPTIONS), address=address)
    guards = (_fork_guard(), channel.check)
    caller = CallInterceptor(address=address, token=token, trace_id=trace_id, guards=guards)
    return grpc.intercept_channel(channel, caller)


def _fork_guard() -> Callable[[], None]:
    """Returns a check that fails in any other process than this one.

    A forked child must never touch gRPC, not even to close what it inherited: calls hang or break at random.
    """
    owner = os.getpid()

    def check() -> None:
        if os.getpid() != owner:
            raise ForkedProcessError(
                "this connection belongs to the parent process and cannot be used after a fork; "
                "start workers with the spawn or forkserver method, or make the call from the main process"
            )

    return check
