"""The address of a request's client, which services use to limit and record sign-ins."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from resolute_gateway.settings import Network
from resolute_serving.bounds.fair_steps import FairSteps

current_caller: ContextVar[str] = ContextVar("current_caller", default="")
"""Who makes the request that is being answered, as gRPC names peers; empty outside of requests."""


def callers(proxies: Sequence[Network]) -> Sequence[Middleware]:
    """Middleware that notes the address of the caller.

    Args:
        proxies: Whose ``X-Forwarded-For`` is believed.
    """
    trusted = [str(proxy) for proxy in proxies]
    believed = [Middleware(ProxyHeadersMiddleware, trusted_hosts=trusted)] if trusted else []
    return [*believed, Middleware(_Caller)]


class _Caller:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._steps = FairSteps()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host, port = scope.get("client") or ("", 0)
        host = host.removeprefix("::ffff:") if "." in host else host  # IPv4 on a port of IPv6
        current_caller.set(f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}")
        # What the loop of this process does for runs comes between.
        await self._steps.run(self._answer(scope, receive, send), of=host)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
