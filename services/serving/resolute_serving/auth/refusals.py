"""Refused calls and sign-ins, counted for the audit log. Equal refusals within seconds are one row."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from resolute.contracts.clock import Clock
from resolute_serving.context import User, actor, current_principal

MOST_KINDS = 100
"""Different refusals that are held at a time; further ones are counted together."""
_OTHER_ADDRESSES = "other addresses"


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A refused call or sign-in, with its caller."""

    actor: str
    """Who called, as in audit rows."""
    user_id: int | None
    """The user who called; None for others."""
    action: str
    """What happened, such as ``permission_denied``."""
    resource: str
    """What was asked for, such as ``call AccessService/CreateToken``."""
    peer: str
    """Address of the client."""


@dataclass(frozen=True)
class CountedRefusal:
    """A number of equal refusals."""

    refusal: Refusal
    count: int
    time: float
    """Unix time of the last one."""


class Refusals:
    """Holds refusals until they are written to the audit log. Its size is bounded.

    Args:
        clock: Tells the time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[Refusal, CountedRefusal] = {}

    def note(self, action: str, resource: str, *, peer: str) -> None:
        """Counts a refusal of the current call.

        Args:
            action: What happened.
            resource: What was asked for.
            peer: Address of the client.
        """
        principal = current_principal.get()
        user_id = (principal.user_id or None) if isinstance(principal, User) else None
        self.add(
            CountedRefusal(
                Refusal(actor=actor(), user_id=user_id, action=action, resource=resource, peer=peer),
                1,
                self._clock.time(),
            )
        )

    def add(self, counted: CountedRefusal) -> None:
        """Counts refusals."""
        key = counted.refusal
        if key not in self._held and len(self._held) >= MOST_KINDS:
            key = Refusal(
                actor="others", user_id=None, action=key.action, resource="others", peer=_OTHER_ADDRESSES
            )
        before = self._held.get(key)
        count = counted.count + (before.count if before else 0)
        self._held[key] = replace(counted, refusal=key, count=count)

    def take(self) -> Sequence[CountedRefusal]:
        """Returns what was counted, and begins anew."""
        held, self._held = self._held, {}
        return list(held.values())


@lru_cache(maxsize=MOST_KINDS)
def client_address(peer: str) -> str:
    """The address of a client without its port; of IPv6 the network that one site usually has.

    Args:
        peer: As gRPC names it: ``ipv4:10.0.0.7:5123``.
    """
    family, _, rest = peer.partition(":")
    if family not in {"ipv4", "ipv6"}:
        return family
    host = rest.rpartition(":")[0].replace("%5B", "[").replace("%5D", "]").strip("[]")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    mapped = address.ipv4_mapped
    return str(mapped or ipaddress.ip_network((address, 64), strict=False))
