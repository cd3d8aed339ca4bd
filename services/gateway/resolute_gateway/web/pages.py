"""What GET answers: the page, where gRPC is, the OpenAPI document, whether the gateway runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from resolute_gateway.settings import HttpSettings
from resolute_gateway.web.asgi import Send, refuse, respond
from resolute_gateway.web.documentation import ROOT, Documentation
from resolute_gateway.web.page_files import PageFiles

DISCOVERY_PATH = "/.well-known/resolute.json"
"""Where clients that know the URL learn the rest."""
_TEXT = "text/plain; charset=utf-8"
_INDEX = b"""This is the HTTP gateway of a Resolute cluster.

POST /PACKAGE.SERVICE/METHOD   a call, by the Connect protocol or gRPC-web, in JSON or binary
GET /openapi.json              every call, as an OpenAPI document
GET /.well-known/resolute.json where gRPC is served
GET /docs/                     the documentation, where RESOLUTE_DOCS_DIR names the built site
"""
_NOT_BUILT = b"""
There is no page: this installation was made from source, without the page's files. `make page` builds them.
"""


class Pages:
    """Answers GET.

    Args:
        settings: What clients are told.
        document: Makes the OpenAPI document.
        files: The page for people.

    Raises:
        FailedPreconditionError: The settings name a directory of documentation that has none.
    """

    def __init__(self, settings: HttpSettings, *, document: Callable[[], bytes], files: PageFiles) -> None:
        self._settings = settings
        self._files = files
        self._make_document = document
        self._documentation = None if settings.docs is None else Documentation(settings.docs)
        self._document: asyncio.Task[bytes] | None = None

    def shows(self, path: str, headers: Mapping[str, str]) -> bool:
        """Whether a request is for a view of the page, or for an asset of it.

        Args:
            path: Its path.
            headers: Its headers, with names in lower case.
        """
        return self._files.serves(path, headers)

    async def answer(self, path: str, headers: Mapping[str, str], send: Send) -> None:
        """Answers a request for a page.

        Args:
            path: Its path.
            headers: Its headers, with names in lower case.
            send: Sends the response.
        """
        if path == "/healthz":
            await respond(send, 200, b"ok\n", kind=_TEXT)
        elif path == DISCOVERY_PATH:
            content = {"cluster_id": self._settings.cluster_id, "grpc_address": self.grpc_address(headers)}
            await respond(send, 200, json.dumps(content).encode())
        elif path == "/openapi.json":
            await respond(send, 200, await self._openapi())
        elif self._documentation is not None and (path == ROOT or path.startswith(f"{ROOT}/")):
            await self._documentation.answer(path, send)
        elif self.shows(path, headers):
            await self._files.answer(path, headers, send)
        elif path == "/":
            text = _INDEX if self._files.are_built else _INDEX + _NOT_BUILT
            await respond(send, 200, text, kind=_TEXT, headers=[(b"vary", b"Accept")])
        else:
            await refuse(send, 404, code="not_found", message="no such page; calls are made by POST")

    def grpc_address(self, headers: Mapping[str, str]) -> str:
        """Where gRPC is served, for a client that reached the gateway by the name in its request."""
        if self._settings.grpc_address:
            return self._settings.grpc_address
        host = urlsplit(f"//{headers.get('host', '')}").hostname or "127.0.0.1"
        return f"[{host}]:{self._settings.grpc_port}" if ":" in host else f"{host}:{self._settings.grpc_port}"

    async def _openapi(self) -> bytes:
        if self._document is None:
            self._document = asyncio.create_task(asyncio.to_thread(self._make_document))
        return await asyncio.shield(self._document)
