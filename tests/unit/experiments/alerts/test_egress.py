"""Where alerts may go, and how long a server may take them."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from resolute.errors import FailedPreconditionError, UnavailableError
from resolute_experiments.alerts import egress
from resolute_experiments.alerts.alert import Alert
from resolute_experiments.alerts.mail import send_mail
from resolute_experiments.alerts.settings import MailServer

LOCAL = egress.networks("127.0.0.1")
INNER = (
    "127.0.0.1",
    "10.1.2.3",
    "169.254.169.254",
    "::1",
    "fe80::1",
    "::ffff:10.0.0.1",
    "0.0.0.0",
    "100.64.0.1",
    "64:ff9b:1::808:808",
    "2001:0:808:808::1",
    "2002:a00:1::1",
)


@pytest.mark.parametrize("address", INNER)
def test_addresses_that_are_not_public_are_refused_unless_the_operator_allows_them(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    found = [(family, socket.SOCK_STREAM, 6, "", (address, 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(FailedPreconditionError, match="not a public address"):
        egress.checked_addresses("rebound.example.org", 443, allowed=())
    plain = ipaddress.ip_address(address)
    mapped = plain.ipv4_mapped if isinstance(plain, ipaddress.IPv6Address) else None
    allowed = egress.networks(str(mapped or plain))
    assert egress.checked_addresses("rebound.example.org", 443, allowed=allowed) == [plain]


def test_one_address_that_is_not_public_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 443)) for ip in ("93.184.216.34", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(FailedPreconditionError, match=r"10\.0\.0\.1"):
        egress.checked_addresses("both.example.org", 443, allowed=())


def test_what_nat64_leads_to_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(address: str, allowed: str = "") -> list[egress.Address]:
        found = [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, 443))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        return egress.checked_addresses("translated.example.org", 443, allowed=egress.networks(allowed))

    assert look_up("64:ff9b::808:808")
    assert look_up("64:ff9b::a00:1", "10.0.0.0/8")
    with pytest.raises(FailedPreconditionError, match="not a public address"):
        look_up("64:ff9b::a00:1")


@contextmanager
def server(beginning: bytes, then: bytes, *, every: float = 0.05) -> Iterator[tuple[int, list[bytes]]]:
    """Answers connections with a beginning, then byte by byte without an end; notes what it is sent first."""
    over, received = threading.Event(), list[bytes]()

    def serve(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.settimeout(every)
                    with suppress(TimeoutError):
                        received.append(connection.recv(4096))
                    connection.sendall(beginning)
                    while then and not over.wait(every):
                        connection.sendall(then)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), name="trickling")
        thread.start()
        try:
            yield listener.getsockname()[1], received
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\nX-Endless: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_post_ends_in_time_although_its_answer_trickles(beginning: bytes) -> None:
    began = time.monotonic()
    with server(beginning, b"a") as (port, _), pytest.raises(UnavailableError):
        egress.post(f"http://127.0.0.1:{port}/", b"{}", {}, allowed=LOCAL, seconds=0.5)
    assert 0.4 < time.monotonic() - began < 60


@pytest.mark.parametrize("beginning", [b"220 ", b"220 ready\r\n250"])
def test_a_mail_ends_in_time_although_its_server_trickles(beginning: bytes) -> None:
    alert = Alert(key="key", on="alert", title="title", text="text", time=1.0)
    began = time.monotonic()
    with server(beginning, b"-") as (port, _):
        sender = MailServer(host="127.0.0.1", port=port, secure=False, sender="resolute@example.org")
        with pytest.raises(UnavailableError):
            send_mail(sender, ["team@example.org"], alert, seconds=0.5)
    assert 0.4 < time.monotonic() - began < 60


def test_the_next_address_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(b"HTTP/1.1 204 No Content\r\n\r\n", b"") as (port, received):
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in ("127.0.0.2", "127.0.0.1")]
        real = socket.getaddrinfo
        monkeypatch.setattr(
            socket,
            "getaddrinfo",
            lambda host, *a, **k: found if host == "two.example.org" else real(host, *a, **k),
        )
        allowed = egress.networks("127.0.0.0/8")
        assert egress.post(f"http://two.example.org:{port}/", b"{}", {}, allowed=allowed).status == 204
    assert f"Host: two.example.org:{port}".encode() in received[0]
