"""The listening socket of HTTP, which limits connections to the available file descriptors."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import socket
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import structlog

from resolute.contracts.clock import Clock
from resolute.errors import UnavailableError
from resolute_gateway.settings import Network

BACKLOG = 2048
_MOST_CONNECTIONS = 8192
_SHARE = 4
"""A quarter of the process's descriptors: gRPC, the databases and the supervisors live on the others."""
_REFUSALS_AT_ONCE = 100
"""Refused connections after which the event loop has its turn."""
_SECONDS_BETWEEN_WARNINGS = 60.0
_NO_DESCRIPTOR = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_log = structlog.get_logger("gateway")


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """The limits of open connections."""

    total: int
    """Of all clients."""
    of_address: int
    """Of one address that is no proxy."""
    proxies: Collection[Network] = ()
    """Addresses that connect for many clients."""

    @classmethod
    def of_this_process(cls, *, proxies: Collection[Network] = ()) -> ConnectionLimits:
        """What the descriptors of this process allow: a quarter of them, of one address half of that."""
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        total = max(16, min(_MOST_CONNECTIONS, descriptors // _SHARE))
        return cls(total=total, of_address=total // 2, proxies=proxies)

    def allowed(self, address: str) -> int:
        """How many connections one address may have open."""
        client = ip_address(address.partition("%")[0])
        client = getattr(client, "ipv4_mapped", None) or client  # on a port of IPv6 that takes IPv4 too
        return self.total if any(client in network for network in self.proxies) else self.of_address


class ListeningSocket(socket.socket):
    """A listening socket that closes connections above its limits when it accepts them.

    Connections count from their acceptance, so a connection in its TLS handshake counts too.

    Args:
        family: Family of its address.
        limits: Limits of open connections.
        clock: Clock for the interval between warnings.
    """

    def __init__(self, family: int, *, limits: ConnectionLimits, clock: Clock) -> None:
        # asyncio turns Nagle's algorithm off only where the protocol is named. With it, the second part of a
        # response waits 40 ms for the client to acknowledge the first.
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._limits = limits
        self._open: Counter[str] = Counter()
        self._clock = clock
        self._next_warning = 0.0
        self._spare = _open_spare()

    def accept(self) -> tuple[socket.socket, Any]:
        """Accepts the next connection that is within the limits.

        Raises:
            BlockingIOError: None of the next connections is, or none waits.
        """
        for _ in range(_REFUSALS_AT_ONCE):
            try:
                accepted, address = super().accept()
            except OSError as error:
                if error.errno not in _NO_DESCRIPTOR or not self._refuse_with_spare():
                    raise
                continue
            host = address[0]
            if self._open.total() < self._limits.total and self._open[host] < self._limits.allowed(host):
                self._open[host] += 1
                return _Accepted(accepted, host, self._open), address
            accepted.close()
            self._warn("connections beyond the limit were closed", address=host, open=self._open.total())
        raise BlockingIOError(errno.EAGAIN, "the event loop goes on with the others later")

    def close(self) -> None:
        """Closes the port."""
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        super().close()

    def _refuse_with_spare(self) -> bool:
        """Takes a connection off the queue though no descriptor is free; False if there is no spare one."""
        if self._spare < 0:
            return False
        os.close(self._spare)
        self._spare = -1  # which another thread may open something under at once
        try:
            refused, address = super().accept()
            refused.close()
            self._warn("no file descriptor is free: a connection was closed", address=address[0])
        finally:
            with contextlib.suppress(OSError):
                self._spare = _open_spare()
        return True

    def _warn(self, message: str, **facts: object) -> None:
        now = self._clock.monotonic()
        if now >= self._next_warning:
            self._next_warning = now + _SECONDS_BETWEEN_WARNINGS
            _log.warning(message, **facts)


def _open_spare() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


class _Accepted(socket.socket):
    """An accepted connection, which is counted until it is closed."""

    def __init__(self, accepted: socket.socket, host: str, counted: Counter[str]) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self._host = host
        self._counted: Counter[str] | None = counted

    def close(self) -> None:
        super().close()
        if self._counted is not None:
            self._counted[self._host] -= 1
            if not self._counted[self._host]:
                del self._counted[self._host]
            self._counted = None


def listen(host: str, port: int, *, limits: ConnectionLimits, clock: Clock) -> ListeningSocket:
    """Opens the port that HTTP is served on.

    Args:
        host: Address to bind.
        port: Port to bind; zero picks a free one.
        limits: Limits of open connections.
        clock: Tells the time.

    Raises:
        UnavailableError: The port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = ListeningSocket(family, limits=limits, clock=clock)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
        opened.listen(BACKLOG)
    except OSError as error:
        opened.close()
        raise UnavailableError(
            f"cannot serve HTTP on {host}:{port} ({error.strerror}); choose another port"
        ) from error
    opened.setblocking(False)
    return opened
