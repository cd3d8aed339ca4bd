"""Ports that nobody else takes while the containers of a run find each other."""

from __future__ import annotations

import socket
from collections.abc import Sequence

PORT_COUNT = 8
"""Ports set aside: two for the workers' collectives, one for torch.distributed, the rest for other layers."""


class ReservedPorts:
    """Free ports of one address, held until they are needed.

    Args:
        address: Address to hold them on.
        count: How many.
    """

    def __init__(self, address: str, count: int = PORT_COUNT) -> None:
        self._sockets: list[socket.socket] = []
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            for _ in range(count):
                holder = socket.socket(family, socket.SOCK_STREAM)
                self._sockets.append(holder)
                holder.bind((address, 0))
        except OSError:
            self.release()
            raise
        self.numbers: Sequence[int] = tuple(holder.getsockname()[1] for holder in self._sockets)

    def release(self) -> None:
        """Lets others take them. Idempotent."""
        for holder in self._sockets:
            holder.close()
        self._sockets.clear()
