"""The response to clients of Determined's REST API, which is not served: a page maps its calls."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

GONE = (
    "the REST API of Determined is not served here: calls are made by POST to /PACKAGE.SERVICE/METHOD; "
    'docs/gateway.md, "From Determined\'s REST API", maps its calls, and commands and scripts use the `det` '
    "and the client that come with Resolute"
)
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


def determined_rest() -> list[Route]:
    """Answers its paths, by any method; its `det` asks for ``/info`` first, earlier ones for ``/login``."""
    paths = (
        "/api/v1",
        "/api/v1/{path:path}",
        "/docs/rest-api",
        "/docs/rest-api/{path:path}",
        "/info",
        "/login",
        "/prom/{path:path}",
        "/resources/allocation/{path:path}",
    )
    return [Route(path, _gone, methods=_METHODS) for path in paths]


async def _gone(request: Request) -> Response:
    if "text/html" in request.headers.get("accept", ""):
        return PlainTextResponse(f"{GONE}\n", 410, headers={"vary": "Accept"})
    # Its clients look for the message in the inner field, ours in the outer one.
    inner = {"code": 12, "reason": "Unimplemented", "error": GONE}
    return JSONResponse({"code": "unimplemented", "message": GONE, "error": inner}, 410)
