"""Keepalive options, by which each end of a connection detects the loss of the other.

A machine that loses power or network does not close its connections: without pings, a stream to it would stay
open forever. Every channel and server has these options, so a connection whose other end is lost is closed
within 15 seconds, even if no call uses it.
"""

from __future__ import annotations

KEEPALIVE_SECONDS = 5.0
"""Between two pings of a connection on which nothing arrives."""
KEEPALIVE_TIMEOUT_SECONDS = 9.0
"""How long the answer to a ping may take: long enough for a process that hardly gets a processor."""

KEEPALIVE_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.keepalive_time_ms", int(KEEPALIVE_SECONDS * 1000)),
    ("grpc.keepalive_timeout_ms", int(KEEPALIVE_TIMEOUT_SECONDS * 1000)),
    # grpcio 1.85 waits this long for the answer, a minute by default, whatever the keepalive timeout is.
    ("grpc.http2.ping_timeout_ms", int(KEEPALIVE_TIMEOUT_SECONDS * 1000)),
    # A connection without calls must be known to work as well: the next call goes over it.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)
"""Options of both ends."""

TOLERANCE_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.http2.min_recv_ping_interval_without_data_ms", int(KEEPALIVE_SECONDS * 500)),
    # On a machine that stalls pings come late and then close together: no reason to drop a connection.
    ("grpc.http2.max_ping_strikes", 0),
)
"""Further options of a server, which by default closes the connections of clients that ping this often."""
