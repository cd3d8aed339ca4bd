"""Responses to GET: the page, the gRPC address, the OpenAPI document, the health of the gateway."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from resolute_gateway.requirements import NO_PAGE
from resolute_gateway.settings import HttpSettings
from resolute_gateway.web.answers import no_page, refusal
from resolute_gateway.web.page_files import PageFiles
from resolute_gateway.web.read_once import ReadOnce

_INDEX = """This is the HTTP gateway of a Resolute cluster.

POST /PACKAGE.SERVICE/METHOD   a call, by the Connect protocol or gRPC-web, in JSON or binary
GET /openapi.json              every call, as an OpenAPI document
GET /checkpoints/UUID.tar      a checkpoint as one download
GET /media/TRIAL_UUID/ID       an image, table and so on that a trial logged
GET /.well-known/resolute.json where gRPC is served
GET /docs/                     the documentation, where RESOLUTE_DOCS_DIR names the built site
"""
_NOT_BUILT = f"\nThere is no page: {NO_PAGE}.\n"


class Pages:
    """Answers GET.

    Args:
        settings: Settings that clients receive.
        document: Builds the OpenAPI document.
        files: The files of the page.
        serves: Whether this process serves the cluster.
    """

    def __init__(
        self,
        settings: HttpSettings,
        *,
        document: Callable[[], bytes],
        files: PageFiles,
        serves: Callable[[], bool],
    ) -> None:
        self._serves = serves
        self._settings = settings
        self._files = files
        self._document = ReadOnce(document)

    async def healthz(self, request: Request) -> Response:
        """Whether a load balancer may send clients here."""
        if not self._serves():
            return refusal(503, code="unavailable", message="this process may not serve the cluster any more")
        return PlainTextResponse("ok\n")

    async def discovery(self, request: Request) -> Response:
        """Where clients that know the URL learn the rest."""
        grpc_address = self._settings.grpc_address_at(request.headers.get("host", ""))
        return JSONResponse({"cluster_id": self._settings.cluster_id, "grpc_address": grpc_address})

    async def openapi(self, request: Request) -> Response:
        """Every call, as an OpenAPI document."""
        return Response(await self._document.get(), media_type="application/json")

    async def view(self, request: Request) -> Response:
        """A view of the page, for browsers; what else there is, for others."""
        if self._files.has_view(request):
            return await self._files.view(request)
        if request.scope["path"] == "/":
            text = _INDEX if self._files.are_built else _INDEX + _NOT_BUILT
            return PlainTextResponse(text, headers={"vary": "Accept"})
        return no_page()
