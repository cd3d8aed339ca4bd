"""What keeps other people's pages from using a browser against the cluster.

A page whose name resolves to this machine would be of one origin with the gateway (DNS rebinding), so the
gateway answers only to names that it knows. Pages of other origins may make calls only where an operator has
listed them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from resolute_gateway.settings import HOSTS_VARIABLE, ORIGINS_VARIABLE
from resolute_gateway.web.asgi import Header, Message, Send

SAFE_HEADERS: tuple[Header, ...] = (
    (
        b"content-security-policy",
        b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
"""Headers of every response: nothing that is answered here is a page, so nothing may be loaded or run."""
PREFLIGHT_HEADERS: tuple[Header, ...] = (
    (b"access-control-allow-methods", b"POST"),
    (
        b"access-control-allow-headers",
        (
            b"authorization, connect-protocol-version, connect-timeout-ms, content-type, grpc-timeout, "
            b"x-grpc-web, x-resolute-client, x-resolute-trace, x-user-agent"
        ),
    ),
    (b"access-control-max-age", b"7200"),
)
"""What a listed page may send."""


@dataclass(frozen=True)
class Refusal:
    """Why a request is not answered."""

    status: int
    message: str


@dataclass(frozen=True, kw_only=True)
class BrowserPolicy:
    """Decides by the headers of a request whether it is answered.

    Attributes:
        hosts: Names by which the gateway may be reached, besides ``localhost`` and IP addresses.
        origins: Origins of other pages that may make calls.
    """

    hosts: Collection[str]
    origins: Collection[str]

    def refusal(self, method: str, headers: Mapping[str, str]) -> Refusal | None:
        """Why a request is refused; None if it is not.

        Args:
            method: Its HTTP method.
            headers: Its headers, with names in lower case.
        """
        host = headers.get("host", "")
        name = _name(host)
        if not self._knows(name):
            return Refusal(
                421, f"this gateway does not answer to the name {name[:200]!r}; list it in {HOSTS_VARIABLE}"
            )
        origin = headers.get("origin")
        if origin is None:
            if method != "GET" and headers.get("sec-fetch-site") in {"cross-site", "same-site"}:
                return Refusal(403, "pages of other origins may not make calls")
            return None
        if self.is_listed(origin) or _authority(origin) == host.lower():
            return None
        return Refusal(
            403,
            f"pages of {origin[:200]!r} may not make calls; an operator can list them in {ORIGINS_VARIABLE}",
        )

    def is_listed(self, origin: str) -> bool:
        """Whether pages of another origin may make calls."""
        return origin.lower() in self.origins

    def _knows(self, name: str) -> bool:
        # No name that somebody else controls resolves to one of these, or is one.
        return name == "localhost" or name.endswith(".localhost") or _is_address(name) or name in self.hosts


def marked(send: Send, *, origin: str) -> Send:
    """Adds the headers that keep browsers safe to a response.

    Args:
        send: Sends it.
        origin: The listed origin of the page that asked; empty for none.
    """
    allowed: list[Header] = []
    if origin:
        allowed = [
            (b"access-control-allow-origin", origin.encode()),
            (
                b"access-control-expose-headers",
                b"grpc-message, grpc-status, grpc-status-details-bin, x-resolute-trace",
            ),
            (b"vary", b"Origin"),
        ]

    async def send_marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", ()))
            named = {name for name, _ in own}
            # What the response itself says goes before: a form needs a policy that lets it be sent.
            safe = [(name, value) for name, value in SAFE_HEADERS if name not in named]
            message = {**message, "headers": [*own, *safe, *allowed]}
        await send(message)

    return send_marked


def _name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _authority(origin: str) -> str:
    """Host and port of an origin; a port that its scheme implies is not written in either header."""
    return origin.lower().partition("://")[2]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
