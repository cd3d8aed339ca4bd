"""Every HTTP request comes in here: who may ask, how much may be sent, then pages and calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from resolute.errors import ResoluteError
from resolute_gateway.web.asgi import Application, Receive, Scope, Send, refuse, respond
from resolute_gateway.web.bodies import MAX_BODY_BYTES, declared_bytes, max_body_bytes, read_in_time
from resolute_gateway.web.browser_safety import PREFLIGHT_HEADERS, BrowserPolicy, marked
from resolute_gateway.web.pages import Pages
from resolute_serving.bounds.limits import MAX_BYTES_IN_PROGRESS
from resolute_serving.bounds.requests import RequestReader

_BODY_BYTES_IN_PROGRESS = MAX_BYTES_IN_PROGRESS // 3


class SignIn(Protocol):
    """Signs browsers in and out, and reads their sessions."""

    page: str
    """Path of its page."""
    paths: Collection[str]
    """Paths to which its forms are sent."""
    visits: Collection[str]
    """Paths by which a browser goes to the OpenID provider and comes back."""

    def authorized(self, scope: Scope, headers: Mapping[str, str]) -> Scope:
        """The call of a page of this origin, with the token of the browser's session."""

    async def answer_get(self, scope: Scope, send: Send) -> None:
        """Shows the page."""

    async def answer_visit(self, scope: Scope, headers: Mapping[str, str], send: Send) -> None:
        """Leads a browser to the OpenID provider, or signs in one that comes from there."""

    async def answer_post(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send
    ) -> None:
        """Signs in or out."""


class WebApplication:
    """The ASGI application of the gateway.

    Args:
        calls: Answers calls.
        paths: The names of all calls.
        pages: What GET answers.
        policy: Decides about browsers.
        sign_in: Signs browsers in and out.
    """

    def __init__(
        self,
        calls: Application,
        *,
        paths: Collection[str],
        pages: Pages,
        policy: BrowserPolicy,
        sign_in: SignIn,
    ) -> None:
        self._calls = calls
        self._paths = paths
        self._pages = pages
        self._policy = policy
        self._sign_in = sign_in
        self._bodies = RequestReader(max_bytes=_BODY_BYTES_IN_PROGRESS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        method, origin = scope["method"], headers.get("origin", "")
        refusal = self._policy.refusal(method, headers)
        listed = refusal is None and self._policy.is_listed(origin)
        send = marked(send, origin=origin if listed else "")
        if refusal is not None:
            await refuse(send, refusal.status, code="permission_denied", message=refusal.message)
        elif method == "OPTIONS" and listed:
            await respond(send, 204, headers=PREFLIGHT_HEADERS)
        elif method == "GET" and scope["path"] in self._sign_in.visits:
            await self._sign_in.answer_visit(scope, headers, send)
        elif method in {"GET", "HEAD"}:
            await self._show(scope, headers, send)
        elif method != "POST":
            await respond(send, 405, headers=[(b"allow", b"GET, HEAD, POST")])
        elif scope["path"] in self._sign_in.paths:
            await self._sign_in.answer_post(scope, headers, read_in_time(receive), send)
        else:
            await self._call(self._sign_in.authorized(scope, headers), headers, receive, send)

    async def _show(self, scope: Scope, headers: Mapping[str, str], send: Send) -> None:
        path = scope["path"]
        if path == self._sign_in.page and not self._pages.shows(path, headers):
            await self._sign_in.answer_get(scope, send)
        else:
            await self._pages.answer(path, headers, send)

    async def _call(self, scope: Any, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        kind = headers.get("content-type", "")
        if kind == "application/grpc" or kind.startswith("application/grpc+"):
            message = f"gRPC is served at {self._pages.grpc_address(headers)}, not here"
            await refuse(send, 415, code="unimplemented", message=message)
            return
        if scope["path"] not in self._paths:
            message = "the cluster has no such call; /openapi.json lists those that it has"
            await refuse(send, 404, code="unimplemented", message=message)
            return
        limit = max_body_bytes(scope["path"], kind)
        size = declared_bytes(headers)
        if size is not None and size > limit:
            message = f"the body has {size} bytes; this call takes {limit} at most"
            await refuse(send, 413, code="resource_exhausted", message=message)
            return
        try:
            with self._bodies.admit(MAX_BODY_BYTES if size is None else size):
                await self._calls(scope, read_in_time(receive), send)
        except ResoluteError:
            await refuse(
                send, 503, code="unavailable", message="the gateway holds many large requests; try again"
            )
