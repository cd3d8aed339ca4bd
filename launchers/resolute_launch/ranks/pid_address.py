"""The address of a ``pid_server``: the path of a socket, a port, or a host and a port."""

from __future__ import annotations

import socket
from dataclasses import dataclass

_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class PidAddress:
    """An address from a command line.

    Raises:
        ValueError: The text is not an address.
    """

    text: str
    """``/path``, ``port`` or ``host:port``; a port alone is one of this machine."""

    def __post_init__(self) -> None:
        if not self._is_path and not self.text.rpartition(":")[2].isdecimal():
            raise ValueError(
                f"{self.text!r} is not an address: give the path of a socket, a port, or host:port"
            )

    def listen(self) -> socket.socket:
        """Returns a socket that listens here."""
        listener = self._socket()
        listener.bind(self._target)
        listener.listen(128)
        return listener

    def connect(self) -> socket.socket:
        """Returns a socket that is connected to who listens here."""
        connection = self._socket()
        connection.connect(self._target)
        return connection

    @property
    def _is_path(self) -> bool:
        return "/" in self.text

    def _socket(self) -> socket.socket:
        return socket.socket(socket.AF_UNIX if self._is_path else socket.AF_INET)

    @property
    def _target(self) -> str | tuple[str, int]:
        if self._is_path:
            return self.text
        host, _, port = self.text.rpartition(":")
        return host or _LOOPBACK, int(port)
