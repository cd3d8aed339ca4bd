"""Free ports of loopback."""

from __future__ import annotations

import atexit
import collections
import contextlib
import random
import socket
from pathlib import Path

from resolute_launch.supervisor.joining.ports import claim_port

_HELD_CLAIMS = 64
"""Ports whose servers may still be starting."""

_claims: collections.deque[socket.socket] = collections.deque()
_random = random.SystemRandom()


def free_port() -> int:
    """A free port for a server that starts soon, and finds it free again after a restart.

    It is below those that the kernel gives to clients: one of these could be a connection's before the server
    listens. No other test's process is given it either, until this one ends or asks for many more.
    """
    highest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    lowest = max(highest // 2, 1024)
    assert highest - lowest > 1000, f"clients are given nearly all ports: ip_local_port_range from {highest}"
    while True:
        port = _random.randrange(lowest, highest)
        if _claim(port):
            with contextlib.suppress(OSError), socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
                return port


def _claim(port: int) -> bool:
    claim = claim_port(port, of="resolute-test")
    if claim is None:
        return False
    _claims.append(claim)
    if len(_claims) > _HELD_CLAIMS:
        _claims.popleft().close()
    return True


@atexit.register
def _release_all() -> None:
    while _claims:
        _claims.pop().close()
