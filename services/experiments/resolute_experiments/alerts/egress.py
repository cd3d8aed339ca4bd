"""Requests to servers that users name: only to public addresses, without redirects, with bounded answers.

A name is looked up once, and connections are made only to the checked addresses.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from resolute.errors import FailedPreconditionError, UnavailableError
from resolute_experiments.alerts.deadline import ended_after

_SECONDS = 10.0
_ANSWER_BYTES = 16 * 1024
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_TRANSLATED = tuple(map(ipaddress.IPv6Network, ("64:ff9b:1::/48", "2001::/32", "2002::/16")))
"""NAT64 of a network's own, Teredo and 6to4: gateways lead from these to IPv4 addresses of any kind."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a server."""

    status: int
    text: str
    """The beginning of the body."""


def networks(text: str) -> tuple[Network, ...]:
    """Reads addresses and networks that are joined by commas.

    Raises:
        ValueError: One is neither.
    """
    return tuple(ipaddress.ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip())


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    allowed: Collection[Network] = (),
    seconds: float = _SECONDS,
) -> Answer:
    """Posts to a URL and reads the beginning of the answer.

    Args:
        url: An http or https URL.
        body: What is posted.
        headers: More headers.
        allowed: Networks that are not public and may be reached nevertheless.
        seconds: How long all of it may take; a look-up of the name that takes longer is the last step.

    Raises:
        FailedPreconditionError: The URL leads to an address that is not public.
        UnavailableError: The server did not answer in time.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    context = ssl.create_default_context() if parts.scheme == "https" else None
    connection = (
        http.client.HTTPSConnection(host, parts.port or 443, context=context)
        if context
        else http.client.HTTPConnection(host, parts.port or 80)
    )
    deadline = time.monotonic() + seconds
    addresses = checked_addresses(host, connection.port, allowed=allowed)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        with _connected(addresses, connection.port, deadline) as plain:
            # The handshake has this time as a whole.
            plain.settimeout(_left(deadline))
            sock: socket.socket = context.wrap_socket(plain, server_hostname=host) if context else plain
            with sock, ended_after(_left(deadline), lambda: sock):
                connection.sock = sock
                connection.request("POST", path, body, {"User-Agent": "resolute", **headers})
                with connection.getresponse() as response:
                    text = response.read(_ANSWER_BYTES).decode(errors="replace")
            # What was cut off is no answer.
            _left(deadline)
            return Answer(response.status, text)
    except (OSError, http.client.HTTPException) as error:
        raise UnavailableError(f"{host} did not take it: {error or type(error).__name__}") from error


def checked_addresses(host: str, port: int, *, allowed: Collection[Network]) -> list[Address]:
    """Looks a name up, once.

    Raises:
        FailedPreconditionError: One of its addresses is not public.
        UnavailableError: There is no such name now.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UnavailableError(f"{host} cannot be looked up: {error}") from error
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    for address in addresses:
        if not _is_reachable(address, allowed):
            raise FailedPreconditionError(
                f"{host} leads to {address}, which is not a public address; the operator allows it by "
                "RESOLUTE_ALERTS_ALLOWED"
            )
    return list(dict.fromkeys(addresses))


def _is_reachable(address: Address, allowed: Collection[Network]) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        translated = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
        address = address.ipv4_mapped or translated or address
    if any(address in network for network in allowed):
        return True
    if any(address in network for network in _TRANSLATED):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _connected(addresses: Sequence[Address], port: int, deadline: float) -> socket.socket:
    """Connects to the first address that takes it; each has its part of the time that is left."""
    for count, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
        try:
            return socket.create_connection((str(address), port), timeout=_left(deadline) / count)
        except OSError:
            if count == 1:
                raise
    raise OSError("there is no address")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("it took too long")
    return left
