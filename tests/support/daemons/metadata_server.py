"""A metadata server of a machine, as clouds have one, on the loopback interface."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class MetadataServer:
    """Answers every question as it was told to last; tests read what it was asked."""

    def __init__(self) -> None:
        self.status, self.body = 404, ""
        self.requests: list[tuple[str, dict[str, str]]] = []
        """Path and headers of each request."""
        self.halt = threading.Event()
        """Set at the end: what still answers gives up."""
        self.drips = False
        """Whether bodies come drop by drop and never end."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.requests.append((self.path, dict(self.headers.items())))
                status, body = server.status, server.body.encode()
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(1 << 20 if server.drips else len(body)))
                self.end_headers()
                while server.drips and not server.halt.wait(0.02):
                    self.wfile.write(b".")
                    self.wfile.flush()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="metadata-server")

    @property
    def url(self) -> str:
        """What is asked."""
        return f"http://127.0.0.1:{self._server.server_port}/spot?recursive=true"

    def start(self) -> None:
        """Begins to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answers no more."""
        self.halt.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def metadata_server() -> Iterator[MetadataServer]:
    """Runs one; it says that the machine stays until it is told otherwise."""
    server = MetadataServer()
    server.start()
    try:
        yield server
    finally:
        server.stop()
