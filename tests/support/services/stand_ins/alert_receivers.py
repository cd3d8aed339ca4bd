"""Real servers that take alerts, and some that should not."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

from aiosmtpd.controller import Controller
from support.ports import free_port

SECRET = "key of the signature"


@dataclass
class Received:
    """What receivers got, by receiver and key: when, and what."""

    times: dict[str, dict[str, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    bodies: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    refused: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def took(self, key: str, names: Sequence[str]) -> bool:
        """Whether each of some receivers got an alert."""
        return all(key in self.times[name] for name in names)

    def keys(self, receiver: str) -> set[str]:
        return set(self.times[receiver])


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        receiver = self.path.strip("/")
        body = self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers["X-Resolute-Key"]
        with suppress(OSError):
            self.server.answers[receiver](self, key, body)

    def take(self, receiver: str, key: str, body: bytes, status: int = 200) -> None:
        received = self.server.received
        received.times[receiver][key].append(time.time())
        received.bodies[receiver][key] = json.loads(body)
        self.answer(status)

    def answer(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


Answer: TypeAlias = Callable[[_Handler, str, bytes], None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def __init__(
        self, received: Received, answers: dict[str, Callable[[_Handler, str, bytes], None]]
    ) -> None:
        self.received = received
        self.answers = answers
        self.ended = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)


def _signed(handler: _Handler, key: str, body: bytes) -> None:
    stamp = handler.headers["X-Resolute-Timestamp"]
    digest = hmac.new(SECRET.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    assert handler.headers["X-Resolute-Signature"] == f"sha256={digest}"
    handler.take("webhook", key, body)


def _slack(handler: _Handler, key: str, body: bytes) -> None:
    content = json.loads(body)
    assert set(content) == {"text"}
    handler.take("slack", key, body)


def _flaky(handler: _Handler, key: str, body: bytes) -> None:
    refused = handler.server.received.refused
    refused[key] += 1
    if refused[key] <= 1:
        handler.answer(503)
    else:
        handler.take("flaky", key, body)


def _silent(handler: _Handler, _key: str, _body: bytes) -> None:
    handler.server.ended.wait(60)


def _endless(handler: _Handler, _key: str, _body: bytes) -> None:
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.ended.wait(0.05):
        handler.wfile.write(b"x" * 10)


def _redirecting(handler: _Handler, _key: str, _body: bytes) -> None:
    handler.answer(307, Location="/secret")


def _secret(handler: _Handler, key: str, body: bytes) -> None:
    handler.take("secret", key, body)


class _Mailbox:
    def __init__(self, received: Received) -> None:
        self._received = received

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        text = envelope.content.decode()
        key = next(line.split(": ")[1] for line in text.splitlines() if line.startswith("X-Resolute-Key"))
        self._received.times["mail"][key].append(time.time())
        return "250 OK"


@dataclass
class Receivers:
    """Where the servers are."""

    received: Received
    url: str
    smtp: str


@contextmanager
def receivers() -> Iterator[Receivers]:
    """Serves until the block ends."""
    received = Received()
    server = _Server(
        received,
        {
            "webhook": _signed,
            "slack": _slack,
            "flaky": _flaky,
            "silent": _silent,
            "endless": _endless,
            "redirecting": _redirecting,
            "secret": _secret,
        },
    )
    thread = threading.Thread(target=server.serve_forever, name="alert-receivers")
    thread.start()
    port = free_port()
    mail = Controller(_Mailbox(received), hostname="127.0.0.1", port=port)
    mail.start()
    try:
        yield Receivers(received, f"http://127.0.0.1:{server.server_port}", f"smtp://127.0.0.1:{port}")
    finally:
        mail.stop()
        server.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()
