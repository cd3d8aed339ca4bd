"""A proxy before a real store that does to requests what networks and stores do on bad days."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import final
from urllib.parse import unquote, urlsplit

from support.object_stores.s3 import S3Server

_BLOCK_BYTES = 1 << 16
_DEADLINE = 60.0


@dataclass(frozen=True)
class ProxyRequest:
    """One request that arrived."""

    method: str
    path: str
    """Bucket and name of the object."""
    size: int
    """Bytes that it brings."""


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """What happens to one request; nothing of it by default."""

    status: int = 0
    """Answered instead of the store."""
    answer: bytes = b""
    """The body of that answer."""
    until: threading.Event | None = None
    """The store hears of the request once this is set."""
    pace: float = 0.0
    """Bytes a second, both ways; zero for as fast as can be."""
    upwards: Callable[[bytes], bytes] = bytes
    """Changes what the store gets."""
    downwards: Callable[[bytes], bytes] = bytes
    """Changes what the store sends."""
    cut: bool = False
    """The connection breaks in the middle of the answer's body, or instead of an answer that has none."""
    silent: bool = False
    """There is never an answer."""


FINE = Disturbance()
ProxyBehaviour = Callable[[ProxyRequest], Disturbance]
"""Decides what happens to a request."""


@final
@dataclass
class StoreProxy:
    """A proxy that runs; its behaviour can be changed at any time."""

    server: S3Server
    """The store as seen through it."""
    behaviour: ProxyBehaviour = lambda _: FINE
    requests: list[ProxyRequest] = field(default_factory=list)
    """Every request so far."""
    closed: threading.Event = field(default_factory=threading.Event)

    def object_names(self, method: str) -> list[str]:
        """Names of the objects that requests of a method were about."""
        return [request.path for request in self.requests if request.method == method]


@contextmanager
def store_proxy(upstream: S3Server) -> Iterator[StoreProxy]:
    """Runs a proxy before a store until the block ends."""
    listening = _Listening(("127.0.0.1", 0), _Handler)
    listening.upstream = upstream
    address = f"http://127.0.0.1:{listening.server_port}"
    proxy = listening.proxy = StoreProxy(replace(upstream, endpoint_url=address, process=None))
    thread = threading.Thread(
        target=listening.serve_forever, name="store-proxy", kwargs={"poll_interval": 0.01}
    )
    thread.start()
    try:
        yield proxy
    finally:
        proxy.closed.set()
        listening.shutdown()
        listening.server_close()
        thread.join()


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    proxy: StoreProxy
    upstream: S3Server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listening

    def do_GET(self) -> None:
        self._pass_on()

    do_PUT = do_POST = do_DELETE = do_HEAD = do_GET  # noqa: N815 - the base class's names

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - the base class's name

    def _pass_on(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        request = ProxyRequest(self.command, unquote(urlsplit(self.path).path).strip("/"), size)
        self.server.proxy.requests.append(request)
        trouble = self.server.proxy.behaviour(request)
        body = self._read(size, trouble.pace)
        if trouble.silent:
            self.server.proxy.closed.wait(_DEADLINE)
            self.close_connection = True
            return
        if trouble.status:
            self._answer(trouble.status, {}, trouble.answer, trouble)
            return
        if trouble.until is not None:
            assert trouble.until.wait(_DEADLINE), "the request was never let go"
        try:
            status, headers, answer = self._ask(trouble.upwards(body))
        except OSError:
            self.close_connection = True
            return
        self._answer(status, headers, trouble.downwards(answer), trouble)

    def _ask(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        address = urlsplit(self.server.upstream.endpoint_url).netloc
        connection = http.client.HTTPConnection(address, timeout=_DEADLINE)
        try:
            # As they came: the signature covers the name of the host too.
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in {"connection", "content-length"}:
                    connection.putheader(name, value)
            if body or self.command in {"PUT", "POST"}:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return response.status, headers, response.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: Mapping[str, str], body: bytes, trouble: Disturbance) -> None:
        if trouble.cut and not body:
            self.close_connection = True
            return
        self.send_response_only(status)
        for name, value in headers.items():
            if name not in {"connection", "transfer-encoding", "content-length"}:
                self.send_header(name, value)
        size = headers.get("content-length", "0") if self.command == "HEAD" else str(len(body))
        self.send_header("Content-Length", size)
        self.end_headers()
        if trouble.cut:
            body = body[: len(body) // 2]
            self.close_connection = True
        for start in range(0, len(body), _BLOCK_BYTES):
            self.wfile.write(body[start : start + _BLOCK_BYTES])
            self._rest(len(body[start : start + _BLOCK_BYTES]), trouble.pace)

    def _read(self, size: int, pace: float) -> bytes:
        blocks = []
        while size:
            block = self.rfile.read(min(size, _BLOCK_BYTES))
            if not block:
                break
            blocks.append(block)
            size -= len(block)
            self._rest(len(block), pace)
        return b"".join(blocks)

    def _rest(self, count: int, pace: float) -> None:
        if pace:
            time.sleep(count / pace)
