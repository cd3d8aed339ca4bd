"""Checks the addresses of stores: a trial's config names the address, and the service connects to it."""

from __future__ import annotations

import ipaddress
from contextlib import suppress

from resolute.errors import PermissionDeniedError

_REFUSED = tuple(
    map(ipaddress.ip_network, ("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "100.100.100.200/32"))
)
"""Link-local addresses and those beside them at which clouds tell a machine its credentials."""


def require_reachable(host: str) -> None:
    """Checks that a host is no forbidden address. Names are checked when they are resolved.

    Raises:
        PermissionDeniedError: It is such an address.
    """
    with suppress(ValueError):
        address = ipaddress.ip_address(host.partition("%")[0])
        address = getattr(address, "ipv4_mapped", None) or address
        if any(address in network for network in _REFUSED):
            raise PermissionDeniedError(
                f"storage.bucket.endpoint_url leads to {address}, where clouds give machines their "
                "credentials; name the address of an object store"
            )
