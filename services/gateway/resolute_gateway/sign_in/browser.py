"""Signing a browser in, by a one-time code or the OpenID provider, and out."""

from __future__ import annotations

import html
from urllib.parse import parse_qs

import grpc
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Scope

from resolute.errors import UnavailableError
from resolute_gateway.backends import Backends
from resolute_gateway.settings import HttpSettings
from resolute_gateway.sign_in.access_calls import AccessCalls, OpenIdProvider
from resolute_gateway.sign_in.cookies import Cookie, from_own_page
from resolute_gateway.sign_in.provider import ProviderSignIn
from resolute_gateway.web.answers import refusal

_FORM = "application/x-www-form-urlencoded"
_LONGEST_BODY = 4096
_PAGE_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    # Browsers tell the origin of a form only where the page lets them name a referrer.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Sign in to Resolute</title>
<h1>Sign in to Resolute</h1>
<p>{message}</p>
{provider}<form method="post" action="sign-in">
<label>One-time code <input name="code" value="{code}" autocomplete="off" required></label>
<button>Sign in</button>
</form>
<p><code>resolute user sign-in-link</code> prints a link with a code.</p>
</html>
"""


class BrowserSignIn:
    """Answers what signs browsers in and out, and reads their sessions.

    Args:
        backends: The services.
        settings: Name the cluster.
    """

    def __init__(self, backends: Backends, settings: HttpSettings) -> None:
        self._calls = AccessCalls(backends)
        self._cookie = Cookie(settings.cluster_id)
        self.provider = ProviderSignIn(self._calls, settings, session=self._cookie)
        """Signs browsers in with the OpenID provider."""

    def close(self) -> None:
        """Ends what asks the provider."""
        self.provider.close()

    def authorized(self, scope: Scope) -> Scope:
        """The call of a page of this origin, with the token of the browser's session.

        Args:
            scope: The call.
        """
        request = HTTPConnection(scope)
        token = self._cookie.value(request)
        if not token or "authorization" in request.headers or not from_own_page(request.headers):
            return scope
        authorization = (b"authorization", f"Bearer {token}".encode())
        return {**scope, "headers": [*scope["headers"], authorization]}

    async def form(self, request: Request) -> Response:
        """The page that takes a code; the link that is printed brings the code along."""
        return await self._form(200, code=request.query_params.get("code", ""))

    async def sign_in(self, request: Request) -> Response:
        """Signs in whoever sends a one-time code."""
        if not from_own_page(request.headers):
            return _of_others()
        code = await _sent_code(request)
        if code is None:
            message = f"the code comes as the field `code` of a form ({_FORM})"
            return refusal(400, code="invalid_argument", message=message)
        try:
            session = await self._calls.redeem(code)
        except (grpc.aio.AioRpcError, UnavailableError):
            return _unavailable()
        if session is None:
            message = (
                "the code is unknown, was used before or has expired; "
                "`resolute user sign-in-link` prints another"
            )
            if "text/html" in request.headers.get("accept", ""):
                return await self._form(401, message=message)
            return refusal(401, code="unauthenticated", message=message)
        response = _home()
        self._cookie.keep(response, session.token, seconds=session.seconds, secure=_over_tls(request))
        return response

    async def sign_out(self, request: Request) -> Response:
        """Revokes the token of the browser's session."""
        if not from_own_page(request.headers):
            return _of_others()
        token = self._cookie.value(request)
        try:
            if token:
                await self._calls.revoke(token)
        except (grpc.aio.AioRpcError, UnavailableError):
            return _unavailable()
        response = _home()
        self._cookie.end(response, secure=_over_tls(request))
        return response

    async def _form(self, status: int, *, code: str = "", message: str = "") -> Response:
        provider = await self._provider_link()
        page = _PAGE.format(code=html.escape(code), message=html.escape(message), provider=provider)
        return HTMLResponse(page, status, headers=_PAGE_HEADERS)

    async def _provider_link(self) -> str:
        try:
            provider = await self._calls.openid_provider()
        except UnavailableError:
            return ""  # the page says so when the code is sent
        return "" if provider is None else _link(provider)


async def _sent_code(request: Request) -> str | None:
    """The code that a form sends; None if the body is no form, is too long, or does not come."""
    if not request.headers.get("content-type", "").startswith(_FORM):
        return None
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > _LONGEST_BODY:
                return None
    except ClientDisconnect:
        return None
    return parse_qs(body.decode("latin-1")).get("code", [""])[0].strip()


def _home() -> Response:
    return RedirectResponse("./", 303, headers={"cache-control": "no-store"})


def _of_others() -> Response:
    message = "only pages of this gateway may sign browsers in and out"
    return refusal(403, code="permission_denied", message=message)


def _unavailable() -> Response:
    message = "the service that knows the users does not answer; try again"
    return refusal(503, code="unavailable", message=message)


def _over_tls(request: Request) -> bool:
    # Behind a proxy with TLS only the browser knows that it is there.
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")


def _link(provider: OpenIdProvider) -> str:
    return f'<p><a href="sign-in/provider">Sign in with {html.escape(provider.issuer)}</a></p>\n'
