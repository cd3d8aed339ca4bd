"""The protocol between supervisors and parked processes.

A parked process has a directory. Its socket appears there when the process is ready; otherwise the file
``refused`` gives the reason. A connection requests one fork, with the fork's output and the fork's own socket
as descriptors. The answer is the fork's process id, later its exit code. ``done``, or the end of the
connection, releases the process id. The secrets of a run are sent only to the fork, over its own socket.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SOCKET, REFUSED, LOCK, LOG, LEARNED = "socket", "refused", "lock", "log", "learned.json"
"""Files of the directory."""
ORDER = "order.json"
"""File of the directory with what the parked process is started for."""
FORK, QUIT, DONE = b"fork", b"quit", b"done"
ANSWER_SECONDS = 60.0
"""How long an answer may take: a parked process may be importing."""
_LENGTH = struct.Struct("!I")


@contextlib.contextmanager
def address(directory: Path) -> Iterator[str]:
    """Gives the socket of a directory by a short path: an address has at most about a hundred characters."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)


def connect(directory: Path) -> socket.socket | None:
    """Connects to the parked process of a directory; None if there is none."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with address(directory) as path:
            connection.connect(path)
    except OSError:
        connection.close()
        return None
    connection.settimeout(ANSWER_SECONDS)
    return connection


def send_message(connection: socket.socket, content: Mapping[str, Any]) -> None:
    """Sends plain data with its length before it."""
    data = json.dumps(content).encode()
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive_message(connection: socket.socket) -> Any:
    """Receives what ``send_message`` sent, and not a byte beyond it; None at the end of the connection."""
    header = _receive(connection, _LENGTH.size)
    data = _receive(connection, _LENGTH.unpack(header)[0]) if header else b""
    return json.loads(data) if data else None


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            return b""
        data += part
    return data
