"""Ports that are reserved during the rendezvous of a run's containers."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence

PORT_COUNT = 8
"""Two for the collectives, one for torch.distributed, one for workers that all listen, and some to spare."""
_TRIES = 64
"""Draws for one port: with this many, other runs have all but taken every port of the machine."""


class ReservedPorts:
    """Free ports of one address, which are held until they are needed, and claimed for the whole run.

    Between ``release`` and the moment when a rank listens, no socket holds a port, and some launchers listen
    on all addresses. So the runs of one machine claim a port number for the whole run.

    Args:
        address: Address to hold them on.
        count: Number of ports.

    Raises:
        OSError: The address does not belong to this machine, or has no free ports.
    """

    def __init__(self, address: str, count: int = PORT_COUNT) -> None:
        self._holders: list[socket.socket] = []
        self._claims: list[socket.socket] = []
        try:
            self.numbers: Sequence[int] = tuple(self._reserve(address) for _ in range(count))
        except OSError:
            self.close()
            raise

    def release(self) -> None:
        """Lets this run's ranks take them. Idempotent."""
        _close(self._holders)

    def close(self) -> None:
        """Lets other runs have them. Idempotent."""
        self.release()
        _close(self._claims)

    def _reserve(self, address: str) -> int:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        for _ in range(_TRIES):
            holder = socket.socket(family, socket.SOCK_STREAM)
            # One that is another run's stays held for now, or it would be drawn again.
            self._holders.append(holder)
            try:
                holder.bind((address, 0))
            except OSError as failure:
                if failure.errno != errno.EADDRINUSE:
                    raise
                break
            number: int = holder.getsockname()[1]
            if self._claim(number):
                return number
        raise OSError(errno.EADDRINUSE, f"{address} has no free port left that no other run has set aside")

    def _claim(self, number: int) -> bool:
        claim = claim_port(number, of="resolute")
        if claim is None:
            return False
        self._claims.append(claim)
        return True


def claim_port(number: int, *, of: str) -> socket.socket | None:
    """Claims a number by a name that the kernel gives to one process, and takes back when it ends.

    Args:
        number: The port.
        of: Begins the name; claims of different beginnings do not meet.

    Returns:
        The claim, to be closed; None where another process has it.
    """
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0{of}-port-{number}")
    except OSError:
        claim.close()
        return None
    return claim


def _close(sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()
    sockets.clear()
