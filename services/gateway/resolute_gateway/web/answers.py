"""Short answers that are no pages."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response


def refusal(status: int, *, code: str, message: str) -> Response:
    """An error in the form that errors of calls have.

    Args:
        status: HTTP status.
        code: The error of the Connect protocol, such as ``not_found``.
        message: What is wrong, and the remedy.
    """
    return JSONResponse({"code": code, "message": message}, status)


async def unrouted(_: Request, error: Exception) -> Response:
    """What the router answers where it has nothing for a path or for a method."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        return Response(status_code=405, headers={"allow": "GET, HEAD, POST"})
    return refusal(404, code="not_found", message="no such page; calls are made by POST")
