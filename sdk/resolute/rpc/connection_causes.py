"""Why a service was not reached, in words for people."""

from __future__ import annotations

_CAUSES = (
    ("connection refused", "nothing listens there"),
    ("http2 header with status", "what answers there is no gRPC service"),
    ("name resolution", "its name is not known"),
    ("dns", "its name is not known"),
    ("wrong_version_number", "one side expects TLS and the other does not"),
    ("certificate has expired", "its certificate has expired"),
    ("peer name", "its certificate is for another name"),
    ("hostname verification", "its certificate is for another name"),
    ("certificate", "its certificate is not trusted"),
    ("handshake", "one side expects TLS and the other does not"),
    ("ssl", "one side expects TLS and the other does not"),
    ("no route to host", "the network has no way there"),
    ("network is unreachable", "the network has no way there"),
    ("timed out", "it does not answer"),
    ("timeout", "it does not answer"),
    ("connection reset", "it closed the connection"),
    ("socket closed", "it closed the connection"),
    ("goaway", "it closed the connection"),
)
"""Parts of what gRPC reports, the most telling first."""


def connection_cause(details: str) -> str:
    """Explains a failed connection.

    Args:
        details: What gRPC reports, with addresses and internals.
    """
    lowered = details.lower()
    return next((cause for part, cause in _CAUSES if part in lowered), "the connection failed")
