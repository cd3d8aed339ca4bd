"""The HTTP gateway of this process: its routes and their handlers."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import cast

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Scope

from resolute_gateway.backends import Backends
from resolute_gateway.listening.http_server import HttpServer
from resolute_gateway.openapi.document import openapi_document
from resolute_gateway.requirements import BUILT
from resolute_gateway.rpc.application import RpcApplication
from resolute_gateway.rpc.json_conversion import JsonConversion
from resolute_gateway.rpc.open_streams import OpenStreams
from resolute_gateway.rpc.sign_in import claimed_caller
from resolute_gateway.settings import HttpSettings
from resolute_gateway.sign_in.browser import BrowserSignIn
from resolute_gateway.sign_in.provider import BEGIN, RETURN
from resolute_gateway.web.answers import unrouted
from resolute_gateway.web.at_most import AtMost
from resolute_gateway.web.bodies import MAX_BODY_BYTES, BodyDeadline
from resolute_gateway.web.browser_safety import BrowserPolicy, browser_safety
from resolute_gateway.web.callers import callers
from resolute_gateway.web.calls import BoundedCalls
from resolute_gateway.web.determined_rest import determined_rest
from resolute_gateway.web.documentation import Documentation
from resolute_gateway.web.downloads.checkpoint_archive import PATH as ARCHIVE
from resolute_gateway.web.downloads.checkpoint_archive import CheckpointArchive
from resolute_gateway.web.downloads.media_content import PATH as MEDIA
from resolute_gateway.web.downloads.media_content import MediaContent
from resolute_gateway.web.page_files import PageFiles
from resolute_gateway.web.pages import Pages
from resolute_serving.tls import ServerTls

_MOST_DOWNLOADS = 32
_MOST_MEDIA = 32


class HttpGateway:
    """Serves calls and pages until it is stopped.

    Args:
        backends: The services.
        settings: Settings of HTTP.
        opened: The open port.
        tls: Its certificate; None for plain HTTP.
        page: Directory of the page's built files.
        serves: Whether this process serves the cluster, for load balancers.
    """

    def __init__(
        self,
        backends: Backends,
        settings: HttpSettings,
        opened: socket.socket,
        *,
        tls: ServerTls | None = None,
        page: Path = BUILT,
        serves: Callable[[], bool] = lambda: True,
    ) -> None:
        self._serves = serves
        self._conversion = JsonConversion()
        self._streams = OpenStreams()
        self._sign_in = BrowserSignIn(backends, settings)
        self._files = PageFiles(page)
        authorized = self._sign_in.authorized

        def caller(scope: Scope) -> str:
            return claimed_caller(Headers(scope=authorized(scope)).items())

        self._archive = AtMost(
            CheckpointArchive(backends, authorized=authorized),
            most=_MOST_DOWNLOADS,
            what="checkpoints",
            caller=caller,
        )
        self._media = AtMost(
            MediaContent(backends, authorized=authorized), most=_MOST_MEDIA, what="media", caller=caller
        )
        rpc = RpcApplication(
            backends, conversion=self._conversion, streams=self._streams, max_bytes=MAX_BODY_BYTES
        )
        calls = BoundedCalls(cast("ASGIApp", rpc), paths=rpc.paths, settings=settings, authorized=authorized)
        policy = BrowserPolicy(hosts=settings.hosts, origins=settings.origins)
        application = Starlette(
            routes=self._routes(settings, calls),
            middleware=[*callers(settings.proxies), *browser_safety(policy), Middleware(BodyDeadline)],
            exception_handlers={HTTPException: unrouted},
        )
        self._server = HttpServer(application, opened, tls=tls)

    def start(self) -> None:
        """Begins to answer."""
        self._server.start()

    async def stop(self) -> None:
        """Ends streams, lets other requests in progress end, closes the port."""
        self._streams.end()
        await self._server.stop()
        await self._conversion.close()
        self._sign_in.provider.close()

    def _routes(self, settings: HttpSettings, calls: BoundedCalls) -> list[Route]:
        pages = Pages(settings, document=openapi_document, files=self._files, serves=self._serves)
        sign_in = self._sign_in
        return [
            Route("/healthz", pages.healthz),
            Route("/.well-known/resolute.json", pages.discovery),
            Route("/openapi.json", pages.openapi),
            *determined_rest(),
            *(Documentation(settings.docs).routes if settings.docs else ()),
            Route("/assets/{path:path}", self._files.asset),
            Route("/sign-in", self._sign_in_page),
            Route("/sign-in", sign_in.sign_in, methods=["POST"]),
            Route("/sign-out", sign_in.sign_out, methods=["POST"]),
            Route(BEGIN, sign_in.provider.begin),
            Route(RETURN, sign_in.provider.end),
            Route(ARCHIVE, self._archive, methods=["GET"]),
            Route(MEDIA, self._media, methods=["GET"]),
            Route("/{path:path}", pages.view),
            Route("/{path:path}", calls, methods=["POST"]),
        ]

    async def _sign_in_page(self, request: Request) -> Response:
        # The page has a view of its own for it.
        shown = self._files.view if self._files.has_view(request) else self._sign_in.form
        return await shown(request)
