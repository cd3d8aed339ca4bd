"""Signs a browser in with the cluster's OpenID provider: the code flow, with PKCE.

The state of a flow is in a cookie of the browser. So any replica can finish a flow that another one began,
and the provider's answer is useless in another browser.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from resolute.contracts.calls import openid
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.errors import FailedPreconditionError, ResoluteError, UnauthenticatedError
from resolute_gateway.settings import HttpSettings
from resolute_gateway.sign_in.access_calls import AccessCalls, OpenIdProvider
from resolute_gateway.sign_in.cookies import Cookie
from resolute_gateway.web.answers import refusal_by
from resolute_serving.workers.threads import BoundedThreads

BEGIN = "/sign-in/provider"
"""Where a sign-in with the provider begins."""
RETURN = "/sign-in/provider/return"
"""Where the provider sends the browser back to. Operators register it there."""
_HOME = "../../"
_FLOW_SECONDS = 600
_MOST_AT_ONCE = 4
"""Requests to the provider at the same time. Sign-ins that begin do not hold those up that end."""
_DESCRIPTION_SECONDS = 300.0
"""How long the gateway keeps what the provider says of itself: strangers can begin sign-ins."""


@dataclass(frozen=True)
class _Flow:
    """The secrets of one sign-in."""

    state: str
    """Comes back with the browser."""
    nonce: str
    """Comes back in the ID token."""
    verifier: str
    """Proves to the provider that the code is redeemed by the client that began the sign-in."""

    @classmethod
    def new(cls) -> _Flow:
        return cls(*(secrets.token_urlsafe(32) for _ in range(3)))

    @classmethod
    def of(cls, cookie: str) -> _Flow | None:
        parts = cookie.split(".")
        return cls(*parts) if len(parts) == 3 and all(parts) else None

    @property
    def cookie(self) -> str:
        return f"{self.state}.{self.nonce}.{self.verifier}"

    @property
    def challenge(self) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class ProviderSignIn:
    """Answers the requests of browsers that sign in with the provider.

    Args:
        calls: The calls of AccessService about the provider and sign-in.
        settings: Settings of HTTP, which name the cluster and the gateway's URL for browsers.
        session: The session cookie.
        clock: Tells the time.
    """

    def __init__(
        self, calls: AccessCalls, settings: HttpSettings, *, session: Cookie, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._calls = calls
        self._url = settings.url
        self._session = session
        # The provider's page leads the browser back, which counts as another site.
        self._flow = Cookie(settings.cluster_id, purpose="-sign-in", same_site="lax")
        self._clock = clock
        self._beginning = BoundedThreads("gateway-openid-begin", threads=_MOST_AT_ONCE)
        self._ending = BoundedThreads("gateway-openid-end", threads=_MOST_AT_ONCE)
        self._described: Mapping[str, Any] = {}
        self._described_until = 0.0

    def close(self) -> None:
        """Ends its threads."""
        self._beginning.close()
        self._ending.close()

    async def begin(self, request: Request) -> Response:
        """Leads a browser to the provider."""
        return await _answered(self._begin(self._own(request)))

    async def end(self, request: Request) -> Response:
        """Signs in a browser that comes from the provider."""
        return await _answered(self._end(self._own(request), request))

    def _own(self, request: Request) -> str:
        """URL at which the browser reached this gateway."""
        return self._url or f"{request.url.scheme}://{request.headers.get('host', '')}"

    async def _begin(self, own: str) -> Response:
        provider = await self._provider()
        flow = _Flow.new()
        described = await self._describe(provider.issuer, self._beginning)
        page = openid.endpoint(described, "authorization_endpoint")
        query = urlencode(
            {
                "response_type": "code",
                "client_id": provider.client_id,
                "scope": " ".join(provider.scopes),
                "redirect_uri": f"{own}{RETURN}",
                "state": flow.state,
                "nonce": flow.nonce,
                "code_challenge": flow.challenge,
                "code_challenge_method": "S256",
            }
        )
        response = _redirect(f"{page}{'&' if '?' in page else '?'}{query}")
        self._flow.keep(response, flow.cookie, seconds=_FLOW_SECONDS, secure=_secure(own))
        return response

    async def _end(self, own: str, request: Request) -> Response:
        given = request.query_params
        flow = _Flow.of(self._flow.value(request))
        if flow is None or not hmac.compare_digest(flow.state.encode(), given.get("state", "").encode()):
            raise UnauthenticatedError(
                f"this browser did not begin the sign-in, or more than {_FLOW_SECONDS // 60} minutes ago; "
                "begin again at the page sign-in"
            )
        provider = await self._provider()
        # Of RFC 9207: the answer of another provider is not for this sign-in.
        if given.get("iss", provider.issuer) != provider.issuer:
            raise UnauthenticatedError("another provider answered the sign-in; begin again")
        if not given.get("code"):
            raise UnauthenticatedError(f"{provider.issuer} did not sign you in: {openid.reason(given)}")
        token = await self._id_token(provider, flow, own=own, code=given["code"])
        session = await self._calls.login_with_id_token(token, nonce=flow.nonce)
        # Always to this gateway, whatever the request asked for.
        response, secure = _redirect(_HOME), _secure(own)
        self._session.keep(response, session.token, seconds=session.seconds, secure=secure)
        self._flow.end(response, secure=secure)
        return response

    async def _id_token(self, provider: OpenIdProvider, flow: _Flow, *, own: str, code: str) -> str:
        fields = {
            "grant_type": "authorization_code",
            "client_id": provider.client_id,
            "code": code,
            "redirect_uri": f"{own}{RETURN}",
            "code_verifier": flow.verifier,
        }
        described = await self._describe(provider.issuer, self._ending)
        url = openid.endpoint(described, "token_endpoint")
        answer = await self._ending.run(partial(openid.ask, url, fields))
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise UnauthenticatedError(f"{provider.issuer} did not sign you in: {openid.reason(answer)}")
        return token

    async def _provider(self) -> OpenIdProvider:
        provider = await self._calls.openid_provider()
        if provider is None:
            raise FailedPreconditionError("this cluster has no OpenID provider; sign in with a one-time code")
        return provider

    async def _describe(self, issuer: str, threads: BoundedThreads) -> Mapping[str, Any]:
        """What the provider says of itself, at most some minutes old."""
        if self._described.get("issuer") != issuer or self._clock.monotonic() >= self._described_until:
            self._described = await threads.run(partial(openid.describe, issuer))
            self._described_until = self._clock.monotonic() + _DESCRIPTION_SECONDS
        return self._described


async def _answered(answer: Awaitable[Response]) -> Response:
    try:
        return await answer
    except ResoluteError as error:
        return refusal_by(error)


def _redirect(location: str) -> Response:
    return RedirectResponse(location, 303)


def _secure(own: str) -> bool:
    return own.startswith("https://")
