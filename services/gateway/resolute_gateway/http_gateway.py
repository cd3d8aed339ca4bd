"""HTTP in front of the services, in this process."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import cast

from resolute_gateway.backends import Backends
from resolute_gateway.openapi.document import openapi_document
from resolute_gateway.rpc.application import RpcApplication
from resolute_gateway.rpc.json_conversion import JsonConversion
from resolute_gateway.rpc.open_streams import OpenStreams
from resolute_gateway.settings import HttpSettings
from resolute_gateway.sign_in.browser import BrowserSignIn
from resolute_gateway.web.application import WebApplication
from resolute_gateway.web.asgi import Application
from resolute_gateway.web.bodies import MAX_BODY_BYTES
from resolute_gateway.web.browser_safety import BrowserPolicy
from resolute_gateway.web.http_server import HttpServer
from resolute_gateway.web.page_files import BUILT, PageFiles
from resolute_gateway.web.pages import Pages
from resolute_serving.tls import ServerTls


class HttpGateway:
    """Serves calls and pages until it is stopped.

    Args:
        backends: The services.
        settings: How it is served.
        opened: The port, open already.
        tls: Its certificate; None for plain HTTP.
        page: Where the built files of the page are.
    """

    def __init__(
        self,
        backends: Backends,
        settings: HttpSettings,
        opened: socket.socket,
        *,
        tls: ServerTls | None = None,
        page: Path = BUILT,
    ) -> None:
        self._conversion = JsonConversion()
        self._streams = OpenStreams()
        self._sign_in = BrowserSignIn(backends, settings)
        calls = RpcApplication(
            backends, conversion=self._conversion, streams=self._streams, max_bytes=MAX_BODY_BYTES
        )
        application = WebApplication(
            cast("Application", calls),
            paths=calls.paths,
            pages=Pages(settings, document=openapi_document, files=PageFiles(page)),
            policy=BrowserPolicy(hosts=settings.hosts, origins=settings.origins),
            sign_in=self._sign_in,
        )
        self._server = HttpServer(application, opened, tls=tls)

    def start(self) -> None:
        """Begins to answer."""
        self._server.start()

    async def stop(self) -> None:
        """Ends streams, lets other requests in progress end, closes the port."""
        self._streams.end()
        await self._server.stop()
        self._conversion.close()
        self._sign_in.close()
