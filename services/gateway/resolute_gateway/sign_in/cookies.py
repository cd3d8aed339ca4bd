"""Cookies of the gateway. The session cookie contains the token, so that every replica can read it.

Browsers store cookies by host, not by port, so the cluster id in the name separates clusters of one machine.
No script can read the cookie, and pages of other sites cannot make a browser send it. Pages of other ports
count as the same site, so a call with the cookie must also come from a page of this origin.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from starlette.requests import HTTPConnection
from starlette.responses import Response

_VALUE = re.compile(r"[A-Za-z0-9._-]{1,3800}")


@dataclass(frozen=True)
class Cookie:
    """Reads and writes one cookie.

    Attributes:
        cluster_id: UUID of the cluster.
        purpose: Purpose of the cookie, which distinguishes it from others of the cluster; empty for the
            session's.
        same_site: ``strict``, or ``lax`` if the cookie is also sent when a page of another site links here.
    """

    cluster_id: str
    purpose: str = ""
    same_site: Literal["strict", "lax"] = "strict"

    @property
    def name(self) -> str:
        """What it is called."""
        return f"resolute-{self.cluster_id}{self.purpose}"

    def value(self, request: HTTPConnection) -> str:
        """What a request brings; empty for nothing."""
        value = request.cookies.get(self.name, "")
        return value if _VALUE.fullmatch(value) else ""

    def keep(self, response: Response, value: str, *, seconds: int, secure: bool) -> None:
        """Makes a browser keep it.

        Args:
            response: What tells the browser.
            value: What it holds.
            seconds: How long it is kept.
            secure: Whether the browser may send it over TLS only.
        """
        response.set_cookie(
            self.name, value, max_age=seconds, httponly=True, samesite=self.same_site, secure=secure
        )

    def end(self, response: Response, *, secure: bool) -> None:
        """Makes a browser forget it.

        Args:
            response: What tells the browser.
            secure: Whether the browser sends it over TLS only.
        """
        response.delete_cookie(self.name, httponly=True, samesite=self.same_site, secure=secure)


def from_own_page(headers: Mapping[str, str]) -> bool:
    """Whether a request was made by a page of the origin that it goes to.

    Args:
        headers: Its headers, with names in lower case.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:  # says it also where a proxy has changed the name of the host
        return site == "same-origin"
    return headers.get("origin", "").lower().partition("://")[2] == headers.get("host", "?").lower()
