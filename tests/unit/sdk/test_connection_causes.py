"""What gRPC reports of a failed connection, in words for people."""

from __future__ import annotations

import pytest

from resolute.rpc.connection_causes import connection_cause

REFUSED = (
    "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:9: "
    "Failed to connect to remote host: connect: Connection refused (111)"
)


@pytest.mark.parametrize(
    ("details", "cause"),
    [
        (REFUSED, "nothing listens there"),
        ("DNS resolution failed for nowhere:80: C-ares status is not ARES_SUCCESS", "its name is not known"),
        ("Ssl handshake failed: SSL_ERROR_SSL: CERTIFICATE_VERIFY_FAILED", "its certificate is not trusted"),
        ("FD shutdown; connect: No route to host (113)", "the network has no way there"),
        ("Socket closed", "it closed the connection"),
        ("something new", "the connection failed"),
    ],
)
def test_a_cause_is_named_without_internals(details: str, cause: str) -> None:
    assert connection_cause(details) == cause
