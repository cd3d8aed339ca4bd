"""Protects the cluster from pages of other sites in a user's browser.

A page whose host name resolves to this machine would have the gateway's origin (DNS rebinding), so the
gateway answers only requests for known names. Pages of other origins may make calls only if an operator has
listed them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from resolute_gateway.settings import HOSTS_VARIABLE, ORIGINS_VARIABLE
from resolute_gateway.web.answers import refusal

_SAFE_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""Headers of every response that does not name its own: what is no page may load and run nothing, and no
cache keeps the answer of a call."""
_SENT_BY_PAGES = (
    "authorization",
    "connect-protocol-version",
    "connect-timeout-ms",
    "content-type",
    "grpc-timeout",
    "x-grpc-web",
    "x-resolute-client",
    "x-resolute-trace",
    "x-user-agent",
)
_READ_BY_PAGES = ("grpc-message", "grpc-status", "grpc-status-details-bin", "x-resolute-trace")
_PREFLIGHT_SECONDS = 7200


@dataclass(frozen=True, kw_only=True)
class BrowserPolicy:
    """Decides by the headers of a request whether to answer it.

    Attributes:
        hosts: Accepted host names, besides ``localhost`` and IP addresses.
        origins: Other origins whose pages may make calls, in lower case, in the notation of browsers.
    """

    hosts: Collection[str]
    origins: Collection[str]

    def refusal(self, method: str, headers: Mapping[str, str]) -> Response | None:
        """The refusal of a request; None if it is not.

        Args:
            method: Its HTTP method.
            headers: Its headers, with names in lower case.
        """
        host = headers.get("host", "")
        name = _name(host)
        if not self._knows(name):
            return _refusal(
                421, f"this gateway does not answer to the name {name[:200]!r}; list it in {HOSTS_VARIABLE}"
            )
        origin = headers.get("origin")
        if origin is None:
            if method != "GET" and headers.get("sec-fetch-site") in {"cross-site", "same-site"}:
                return _refusal(403, "pages of other origins may not make calls")
            return None
        if origin in self.origins or _authority(origin) == host.lower():
            return None
        return _refusal(
            403,
            f"pages of {origin[:200]!r} may not make calls; an operator can list them in {ORIGINS_VARIABLE}",
        )

    def _knows(self, name: str) -> bool:
        # No name that somebody else controls resolves to one of these, or is one.
        return name == "localhost" or name.endswith(".localhost") or _is_address(name) or name in self.hosts


def browser_safety(policy: BrowserPolicy) -> Sequence[Middleware]:
    """What every request passes, outermost first.

    Args:
        policy: Decides about browsers.
    """
    listed = Middleware(
        CORSMiddleware,
        allow_origins=policy.origins,
        allow_methods=["POST"],
        allow_headers=_SENT_BY_PAGES,
        expose_headers=_READ_BY_PAGES,
        max_age=_PREFLIGHT_SECONDS,
    )
    return [
        Middleware(_SafeHeaders),
        Middleware(_Guard, policy),
        *([listed] if policy.origins else []),
    ]


class _SafeHeaders:
    """Adds security headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safe(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SAFE_HEADERS.items():
                    # What the response itself says goes before: a form needs a policy that lets it be sent.
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_safe)


class _Guard:
    """Passes on the requests that the policy accepts."""

    def __init__(self, app: ASGIApp, policy: BrowserPolicy) -> None:
        self._app = app
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._policy.refusal(scope["method"], Headers(scope=scope))
        await (refused or self._app)(scope, receive, send)


def _refusal(status: int, message: str) -> Response:
    return refusal(status, code="permission_denied", message=message)


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
