"""Readable causes of failed connections to a service."""

from __future__ import annotations

TLS_MISMATCH = "one side expects TLS and the other does not"
NOT_GRPC = "what answers there is no gRPC service"
CLOSED = "it closed the connection"
UNTRUSTED = "its certificate is not trusted"
_CAUSES = (
    ("connection refused", "nothing listens there"),
    ("http2 header with status", NOT_GRPC),
    ("http1.x server", NOT_GRPC),
    ("name resolution", "its name is not known"),
    ("dns", "its name is not known"),
    ("wrong_version_number", TLS_MISMATCH),
    ("certificate has expired", "its certificate has expired"),
    ("peer name", "its certificate is for another name"),
    ("hostname verification", "its certificate is for another name"),
    ("certificate", UNTRUSTED),
    ("handshake", TLS_MISMATCH),
    ("ssl", TLS_MISMATCH),
    ("no route to host", "the network has no way there"),
    ("network is unreachable", "the network has no way there"),
    ("timed out", "it does not answer"),
    ("timeout", "it does not answer"),
    ("connection reset", CLOSED),
    ("socket closed", CLOSED),
    ("goaway", CLOSED),
    ("rst_stream", "the connection behind a proxy broke"),
    ("end_stream", "the connection behind a proxy broke"),
)
"""Parts of what gRPC reports, the most telling first."""


def connection_cause(details: str) -> str:
    """Explains a failed connection.

    Args:
        details: What gRPC reports, with addresses and internals.
    """
    lowered = details.lower()
    return next((cause for part, cause in _CAUSES if part in lowered), "the connection failed")


def is_broken_connection(status_name: str, details: str) -> bool:
    """Whether a call failed because a connection broke, and not because the service failed.

    A proxy whose connection to a service breaks resets the streams of its clients, or ends them without the
    status that services end them with. gRPC calls that INTERNAL or UNKNOWN.

    Args:
        status_name: Name of the gRPC status code of a failure without a ``google.rpc.Status``.
        details: What gRPC reports.
    """
    ended = any(flag in details for flag in ("RST_STREAM", "END_STREAM", "Stream removed"))
    return status_name == "UNAVAILABLE" or (status_name in {"INTERNAL", "UNKNOWN"} and ended)
