"""The cookie of a browser's session. It holds the token, so that every replica of the gateway knows it.

Cookies are kept by host, whatever the port: the id of the cluster in the name keeps clusters of one machine
apart. No script can read the cookie, and no page of another site makes a browser send it. Pages of other
ports count as the same site, so a call under the cookie must also come from a page of this very origin.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_TOKEN = re.compile(r"[A-Za-z0-9._-]{1,3800}")


@dataclass(frozen=True)
class SessionCookie:
    """Reads and writes the cookie.

    Attributes:
        cluster_id: UUID of the cluster.
    """

    cluster_id: str

    @property
    def name(self) -> str:
        """What it is called."""
        return f"resolute-{self.cluster_id}"

    def token(self, headers: Mapping[str, str]) -> str:
        """The token of a request; empty if it has none.

        Args:
            headers: Its headers, with names in lower case.
        """
        for item in headers.get("cookie", "").split(";"):
            name, _, value = item.strip().partition("=")
            if name == self.name and _TOKEN.fullmatch(value):
                return value
        return ""

    def written(self, token: str, *, seconds: int, secure: bool) -> bytes:
        """The header that makes a browser keep a token.

        Args:
            token: The token; empty to forget one.
            seconds: How long it is kept.
            secure: Whether the browser may send it over TLS only.
        """
        ending = "; Secure" if secure else ""
        return f"{self.name}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{ending}".encode()


def from_own_page(headers: Mapping[str, str]) -> bool:
    """Whether a request was made by a page of the origin that it goes to.

    Args:
        headers: Its headers, with names in lower case.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:  # says it also where a proxy has changed the name of the host
        return site == "same-origin"
    return headers.get("origin", "").lower().partition("://")[2] == headers.get("host", "?").lower()
