"""Signs browsers in, by a password, a one-time code or the OpenID provider, and out."""

from __future__ import annotations

import html
from collections.abc import Mapping

import grpc
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Scope

from resolute.errors import QuotaError, ResoluteError, UnauthenticatedError, UnavailableError
from resolute_gateway.backends import Backends
from resolute_gateway.settings import HttpSettings
from resolute_gateway.sign_in import form
from resolute_gateway.sign_in.access_calls import AccessCalls, OpenIdProvider, Session
from resolute_gateway.sign_in.cookies import Cookie, from_own_page
from resolute_gateway.sign_in.provider import ProviderSignIn
from resolute_gateway.web.answers import refusal

_PAGE_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    # Browsers tell the origin of a form only where the page lets them name a referrer.
    "referrer-policy": "same-origin",
}
_DEVICE_SECONDS = 365 * 86_400


class BrowserSignIn:
    """Answers the requests that sign browsers in and out, and reads their sessions.

    Args:
        backends: The services.
        settings: Settings of HTTP, which name the cluster.
    """

    def __init__(self, backends: Backends, settings: HttpSettings) -> None:
        self._calls = AccessCalls(backends)
        self._cookie = Cookie(settings.cluster_id)
        self._device = Cookie(settings.cluster_id, purpose="-device")
        self.provider = ProviderSignIn(self._calls, settings, session=self._cookie)
        """Signs browsers in with the OpenID provider; to be closed."""

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
        """The page that takes a code or a password; the link that is printed brings the code along."""
        code, refused = (request.query_params.get(name, "") for name in ("code", "refused"))
        text = form.page(provider=await self._provider_link(), code=code, refused=refused)
        return HTMLResponse(text, headers=_PAGE_HEADERS)

    async def sign_in(self, request: Request) -> Response:
        """Signs in by a one-time code, or by a name and a password."""
        if not from_own_page(request.headers):
            return _of_others()
        fields = await form.sent(request)
        if not (fields.get("code") or (fields.get("user") and fields.get("password"))):
            message = f"a code comes as the field `code` of a form ({form.KIND}), or `user` and `password` do"
            return refusal(400, code="invalid_argument", message=message)
        try:
            session = await self._session(fields, device_token=self._device.value(request))
        except UnauthenticatedError:
            return form.refused("code" if fields.get("code") else "password", request)
        except QuotaError:
            return form.refused("attempts", request)
        except UnavailableError:
            return form.refused("silence", request)
        except ResoluteError as error:
            return form.refused("refusal", request, error=error)
        response, secure = _home(), _over_tls(request)
        self._cookie.keep(response, session.token, seconds=session.seconds, secure=secure)
        if session.device_token:
            self._device.keep(response, session.device_token, seconds=_DEVICE_SECONDS, secure=secure)
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
            return form.refusal_of("silence")
        response = _home()
        self._cookie.end(response, secure=_over_tls(request))
        return response

    async def _session(self, fields: Mapping[str, str], *, device_token: str) -> Session:
        if code := fields.get("code"):
            return await self._calls.redeem(code.strip())
        return await self._calls.login(fields["user"].strip(), fields["password"], device_token=device_token)

    async def _provider_link(self) -> str:
        try:
            provider = await self._calls.openid_provider()
        except UnavailableError:
            return ""  # the page says so when the code is sent
        return "" if provider is None else _link(provider)


def _home() -> Response:
    return RedirectResponse("./", 303)


def _of_others() -> Response:
    message = "only pages of this gateway may sign browsers in and out"
    return refusal(403, code="permission_denied", message=message)


def _over_tls(request: Request) -> bool:
    # Behind a proxy with TLS only the browser knows that it is there.
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")


def _link(provider: OpenIdProvider) -> str:
    return f'<p><a href="sign-in/provider">Sign in with {html.escape(provider.issuer)}</a></p>\n'
