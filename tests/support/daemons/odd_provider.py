"""OpenID providers that do not behave: a real one always does."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str], "Mapping[str, Any] | bytes | None"]
"""What a path answers: JSON, or any bytes; None for a body that never ends."""


@contextmanager
def silent_provider() -> Iterator[str]:
    """The issuer of a provider that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as opened:
        yield f"http://127.0.0.1:{opened.getsockname()[1]}"


@contextmanager
def odd_provider(answer: Answer) -> Iterator[str]:
    """The issuer of a provider that answers as it is told."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # A connection that is closed with unread data is reset, and its answer may be lost.
            self.rfile.read(int(self.headers.get("content-length") or 0))
            found = answer(self.path)
            self.send_response(200)
            self.end_headers()
            if found is None:
                try:
                    while not ended.wait(0.01):
                        self.wfile.write(b" ")
                except OSError:
                    return  # the client has gone
            else:
                self.wfile.write(found if isinstance(found, bytes) else json.dumps(found).encode())

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            ended.set()
            server.shutdown()
            thread.join()
