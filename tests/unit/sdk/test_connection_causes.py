"""What gRPC reports of a failed connection, in words for people."""

from __future__ import annotations

import traceback

import grpc
import pytest

from resolute.errors import DeadlineError, UnavailableError
from resolute.rpc.connection_causes import connection_cause, is_broken_connection
from resolute.rpc.interceptors import to_typed_error

REFUSED = (
    "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:9: "
    "Failed to connect to remote host: connect: Connection refused (111)"
)

RESET = "Stream removed (RST_STREAM (Received RST_STREAM with error code 2))"
CUT = "Stream removed (Data frame with END_STREAM flag received)"


@pytest.mark.parametrize(
    ("details", "cause"),
    [
        (REFUSED, "nothing listens there"),
        ("DNS resolution failed for nowhere:80: C-ares status is not ARES_SUCCESS", "its name is not known"),
        ("Ssl handshake failed: SSL_ERROR_SSL: CERTIFICATE_VERIFY_FAILED", "its certificate is not trusted"),
        ("FD shutdown; connect: No route to host (113)", "the network has no way there"),
        ("Socket closed", "it closed the connection"),
        ("Trying to connect an http1.x server (HTTP status 400)", "what answers there is no gRPC service"),
        (RESET, "the connection behind a proxy broke"),
        (CUT, "the connection behind a proxy broke"),
        ("something new", "the connection failed"),
    ],
)
def test_a_cause_is_named_without_internals(details: str, cause: str) -> None:
    assert connection_cause(details) == cause


class _Reset(grpc.RpcError):
    """What grpcio raises for a stream that a proxy resets, or ends without a status."""

    def __init__(self, details: str, code: grpc.StatusCode = grpc.StatusCode.UNKNOWN) -> None:
        self._details = details
        self._code = code

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> tuple[()]:
        return ()


@pytest.mark.parametrize("details", [RESET, CUT])
def test_a_stream_that_a_proxy_ends_counts_as_a_broken_connection(details: str) -> None:
    error = to_typed_error(_Reset(details), "proxy:8443")
    assert isinstance(error, UnavailableError)
    assert "the connection behind a proxy broke" in str(error)


@pytest.mark.parametrize("details", ["Deadline Exceeded", "Stream removed (Deadline Exceeded)"])
def test_a_call_that_took_too_long_says_of_whom_and_what_to_do(details: str) -> None:
    error = to_typed_error(_Reset(details, grpc.StatusCode.DEADLINE_EXCEEDED), "host:1")
    assert isinstance(error, DeadlineError)
    assert str(error) == "host:1 did not answer in time; see whether its machine is overloaded, then repeat"


@pytest.mark.parametrize(
    ("status_name", "details", "broken"),
    [
        ("UNAVAILABLE", REFUSED, True),
        ("INTERNAL", RESET, True),
        ("UNKNOWN", CUT, True),
        ("UNKNOWN", "Stream removed (Deadline Exceeded)", True),
        ("INTERNAL", "the service failed", False),
        ("CANCELLED", RESET, False),
    ],
)
def test_failures_of_services_are_told_from_broken_connections(
    status_name: str, details: str, broken: bool
) -> None:
    assert is_broken_connection(status_name, details) is broken


def test_tracebacks_of_scripts_show_no_status_of_grpc() -> None:
    failure = _Reset(CUT)
    with pytest.raises(UnavailableError) as raised:
        raise to_typed_error(failure, "proxy:8443") from None
    assert raised.value.__context__ is failure
    shown = "".join(traceback.format_exception(raised.type, raised.value, raised.tb))
    assert "cannot reach proxy:8443" in shown
    assert "_Reset" not in shown
