"""Cookies of the gateway. That of a browser's session holds the token, so that every replica knows it.

Cookies are kept by host, whatever the port: the id of the cluster in the name keeps clusters of one machine
apart. No script can read the cookie, and no page of another site makes a browser send it. Pages of other
ports count as the same site, so a call under the cookie must also come from a page of this very origin.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from resolute_gateway.web.asgi import Header

_VALUE = re.compile(r"[A-Za-z0-9._-]{1,3800}")


@dataclass(frozen=True)
class Cookie:
    """Reads and writes one cookie.

    Attributes:
        cluster_id: UUID of the cluster.
        purpose: Tells it from others of the cluster; empty for that of the session.
        same_site: ``Strict``, or ``Lax`` if it is also sent where a page of another site leads here.
    """

    cluster_id: str
    purpose: str = ""
    same_site: str = "Strict"

    @property
    def name(self) -> str:
        """What it is called."""
        return f"resolute-{self.cluster_id}{self.purpose}"

    def value(self, headers: Mapping[str, str]) -> str:
        """What a request brings; empty for nothing.

        Args:
            headers: Its headers, with names in lower case.
        """
        for item in headers.get("cookie", "").split(";"):
            name, _, value = item.strip().partition("=")
            if name == self.name and _VALUE.fullmatch(value):
                return value
        return ""

    def kept(self, value: str, *, seconds: int, secure: bool) -> Header:
        """The header that makes a browser keep it.

        Args:
            value: What it holds.
            seconds: How long it is kept.
            secure: Whether the browser may send it over TLS only.
        """
        ending = "; Secure" if secure else ""
        attributes = f"Path=/; Max-Age={seconds}; HttpOnly; SameSite={self.same_site}{ending}"
        return b"set-cookie", f"{self.name}={value}; {attributes}".encode()

    def ended(self, *, secure: bool) -> Header:
        """The header that makes a browser forget it.

        Args:
            secure: Whether the browser sends it over TLS only.
        """
        return self.kept("", seconds=0, secure=secure)


def from_own_page(headers: Mapping[str, str]) -> bool:
    """Whether a request was made by a page of the origin that it goes to.

    Args:
        headers: Its headers, with names in lower case.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:  # says it also where a proxy has changed the name of the host
        return site == "same-origin"
    return headers.get("origin", "").lower().partition("://")[2] == headers.get("host", "?").lower()
