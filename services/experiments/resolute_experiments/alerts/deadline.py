"""Ends a connection at its deadline, whatever the other side does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_AGAIN_SECONDS = 0.1


@contextmanager
def ended_after(seconds: float, connected: Callable[[], socket.socket | None]) -> Iterator[None]:
    """Shuts a connection down if the block takes longer: what reads or writes then ends at once.

    The timeout of a socket counts anew with each read, so a server that sends byte by byte would hold its
    reader.

    Args:
        seconds: How long the block may take.
        connected: The socket at the time of the call, which may be replaced by that of TLS; None while there
            is none.
    """
    over = threading.Event()

    def end() -> None:
        pause = seconds
        while not over.wait(pause):
            pause = _AGAIN_SECONDS
            sock = connected()
            if sock is not None:
                with suppress(OSError):
                    # Not that of an SSLSocket, which takes TLS away from a read that is under way.
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)

    thread = threading.Thread(target=end, name="alert-deadline", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
