"""What clients of Determined's REST API are told: that it is not here, and where its calls are mapped."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from resolute_gateway.web.answers import refusal

GONE = (
    "the REST API of Determined is not served here: calls are made by POST to /PACKAGE.SERVICE/METHOD; "
    'docs/gateway.md, "From Determined\'s REST API", maps its calls, and commands and scripts use the `det` '
    "and the client that come with Resolute"
)
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


def determined_rest() -> list[Route]:
    """Answers its paths, by any method."""
    paths = ("/api/v1", "/api/v1/{path:path}", "/docs/rest-api", "/docs/rest-api/{path:path}")
    return [Route(path, _gone, methods=_METHODS) for path in paths]


async def _gone(request: Request) -> Response:
    if "text/html" in request.headers.get("accept", ""):
        return PlainTextResponse(f"{GONE}\n", 410, headers={"vary": "Accept"})
    return refusal(410, code="unimplemented", message=GONE)
