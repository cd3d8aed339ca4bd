"""Signing a browser in, by a one-time code or the OpenID provider, and out."""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping
from urllib.parse import parse_qs

import grpc

from resolute.errors import UnavailableError
from resolute_gateway.backends import Backends
from resolute_gateway.settings import HttpSettings
from resolute_gateway.sign_in.access_calls import AccessCalls, OpenIdProvider
from resolute_gateway.sign_in.cookies import Cookie, from_own_page
from resolute_gateway.sign_in.provider import ProviderSignIn
from resolute_gateway.web.asgi import Header, Receive, Scope, Send, refuse, respond

_SIGN_IN, _SIGN_OUT = "/sign-in", "/sign-out"
_FORM = "application/x-www-form-urlencoded"
_LONGEST_BODY = 4096
# Browsers tell the origin of a form only where the page lets them name a referrer.
_PAGE_HEADERS: tuple[Header, ...] = (
    (
        b"content-security-policy",
        b"default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
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
        self.page = _SIGN_IN
        self.paths: Collection[str] = frozenset([_SIGN_IN, _SIGN_OUT])
        self._calls = AccessCalls(backends)
        self._cookie = Cookie(settings.cluster_id)
        self._provider = ProviderSignIn(self._calls, settings, session=self._cookie)
        self.visits = self._provider.paths

    def close(self) -> None:
        """Ends what asks the provider."""
        self._provider.close()

    def authorized(self, scope: Scope, headers: Mapping[str, str]) -> Scope:
        """The call of a page of this origin, with the token of the browser's session.

        Args:
            scope: The call.
            headers: Its headers, with names in lower case.
        """
        token = self._cookie.value(headers)
        if not token or "authorization" in headers or not from_own_page(headers):
            return scope
        authorization = (b"authorization", f"Bearer {token}".encode())
        return {**scope, "headers": [*scope["headers"], authorization]}

    async def answer_get(self, scope: Scope, send: Send) -> None:
        """Shows the page that takes a code; the link that is printed brings the code along."""
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("code", [""])
        await self._show(send, 200, code=given[0])

    async def answer_visit(self, scope: Scope, headers: Mapping[str, str], send: Send) -> None:
        """Leads a browser to the OpenID provider, or signs in a browser that comes from there.

        Args:
            scope: The request.
            headers: Its headers, with names in lower case.
            send: Sends the response.
        """
        await self._provider.answer(scope, headers, send)

    async def _show(self, send: Send, status: int, *, code: str = "", message: str = "") -> None:
        provider = await self._provider_link()
        page = _PAGE.format(code=html.escape(code), message=html.escape(message), provider=provider)
        await respond(send, status, page.encode(), kind="text/html; charset=utf-8", headers=_PAGE_HEADERS)

    async def _provider_link(self) -> str:
        try:
            provider = await self._calls.openid_provider()
        except UnavailableError:
            return ""  # the page says so when the code is sent
        return "" if provider is None else _link(provider)

    async def answer_post(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send
    ) -> None:
        """Signs in or out.

        Args:
            scope: The request.
            headers: Its headers, with names in lower case.
            receive: Gives its body.
            send: Sends the response.
        """
        if not from_own_page(headers):
            message = "only pages of this gateway may sign browsers in and out"
            await refuse(send, 403, code="permission_denied", message=message)
            return
        try:
            if scope["path"] == _SIGN_IN:
                await self._sign_in(scope, headers, receive, send)
            else:
                await self._sign_out(scope, headers, send)
        except (grpc.aio.AioRpcError, UnavailableError):
            message = "the service that knows the users does not answer; try again"
            await refuse(send, 503, code="unavailable", message=message)

    async def _sign_in(self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        body = await _body(receive) if headers.get("content-type", "").startswith(_FORM) else None
        if body is None:
            message = f"the code comes as the field `code` of a form ({_FORM})"
            await refuse(send, 400, code="invalid_argument", message=message)
            return
        code = parse_qs(body.decode("latin-1")).get("code", [""])[0].strip()
        session = await self._calls.redeem(code)
        if session is None:
            message = (
                "the code is unknown, was used before or has expired; "
                "`resolute user sign-in-link` prints another"
            )
            if "text/html" in headers.get("accept", ""):
                await self._show(send, 401, message=message)
            else:
                await refuse(send, 401, code="unauthenticated", message=message)
            return
        secure = _over_tls(scope, headers)
        await _redirect(send, self._cookie.kept(session.token, seconds=session.seconds, secure=secure))

    async def _sign_out(self, scope: Scope, headers: Mapping[str, str], send: Send) -> None:
        token = self._cookie.value(headers)
        if token:
            await self._calls.revoke(token)
        await _redirect(send, self._cookie.ended(secure=_over_tls(scope, headers)))


async def _redirect(send: Send, cookie: Header) -> None:
    await respond(send, 303, headers=[cookie, (b"location", b"./"), (b"cache-control", b"no-store")])


def _over_tls(scope: Scope, headers: Mapping[str, str]) -> bool:
    # Behind a proxy with TLS only the browser knows that it is there.
    return scope.get("scheme") == "https" or headers.get("origin", "").startswith("https://")


def _link(provider: OpenIdProvider) -> str:
    return f'<p><a href="sign-in/provider">Sign in with {html.escape(provider.issuer)}</a></p>\n'


async def _body(receive: Receive) -> bytes | None:
    """The body of a small request; None if it is longer, or its client has gone."""
    body = b""
    while len(body) <= _LONGEST_BODY:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return body if len(body) <= _LONGEST_BODY else None
    return None
