"""A network that loses everything without a word: a TCP proxy whose connections can fall silent."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_BLOCK_BYTES = 1 << 16
_POLL_SECONDS = 0.05


class SilentProxy:
    """Forwards connections to one address until it is told to lose what they carry.

    Both ends of a lost connection see it open: nothing that they send arrives, and nothing is refused.

    Args:
        upstream: ``host:port``.
    """

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream.rpartition(":")
        self._selector = selectors.DefaultSelector()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._ends: dict[socket.socket, socket.socket] = {}
        self._lost: list[socket.socket] = []
        self._lock = threading.Lock()
        self._partitioned = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="silent-proxy", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self._listening.getsockname()[1]}"

    def partition(self) -> None:
        """Loses everything from now on: on connections that are open, and on those that are opened."""
        with self._lock:
            self._partitioned = True
            for end in self._ends:
                self._selector.unregister(end)
            self._lost += self._ends
            self._ends.clear()

    def heal(self) -> None:
        """Forwards new connections again. What was open stays silent."""
        with self._lock:
            self._partitioned = False

    def close(self) -> None:
        """Closes everything."""
        self._stop.set()
        self._thread.join()
        for end in [*self._ends, *self._lost, self._listening]:
            end.close()
        self._selector.close()

    def _serve(self) -> None:
        while not self._stop.is_set():
            for key, _ in self._selector.select(_POLL_SECONDS):
                with self._lock:
                    if key.fileobj is self._listening:
                        self._accept()
                    elif key.fileobj in self._ends:
                        assert isinstance(key.fileobj, socket.socket)
                        self._forward(key.fileobj)

    def _accept(self) -> None:
        near, _ = self._listening.accept()
        if self._partitioned:
            self._lost.append(near)
            return
        host, _, port = self._upstream
        try:
            far = socket.create_connection((host, int(port)))
        except OSError:
            near.close()
            return
        self._ends |= {near: far, far: near}
        for end in (near, far):
            self._selector.register(end, selectors.EVENT_READ)

    def _forward(self, source: socket.socket) -> None:
        target = self._ends[source]
        try:
            data = source.recv(_BLOCK_BYTES)
            target.sendall(data)
        except OSError:
            data = b""
        if not data:
            for end in (source, target):
                self._selector.unregister(end)
                del self._ends[end]
                end.close()


@contextmanager
def silent_proxy(upstream: str) -> Iterator[SilentProxy]:
    """Forwards to an address until the block ends."""
    proxy = SilentProxy(upstream)
    try:
        yield proxy
    finally:
        proxy.close()
