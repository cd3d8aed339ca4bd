"""Short responses that are not pages."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PermissionDeniedError,
    QuotaError,
    ResoluteError,
    UnauthenticatedError,
)

_STATUS: Mapping[type[ResoluteError], tuple[int, str]] = {
    InvalidArgumentError: (400, "invalid_argument"),
    UnauthenticatedError: (401, "unauthenticated"),
    PermissionDeniedError: (403, "permission_denied"),
    FailedPreconditionError: (400, "failed_precondition"),
    QuotaError: (429, "resource_exhausted"),
}


def refusal(status: int, *, code: str, message: str) -> Response:
    """An error in the form that errors of calls have.

    Args:
        status: HTTP status.
        code: The error of the Connect protocol, such as ``not_found``.
        message: What is wrong, and the remedy.
    """
    return JSONResponse({"code": code, "message": message}, status)


def refusal_by(error: ResoluteError) -> Response:
    """The response to what a service refused; any error that is no refusal counts as an outage.

    Args:
        error: Says what is wrong, and the remedy.
    """
    status, code = _STATUS.get(type(error), (503, "unavailable"))
    return refusal(status, code=code, message=str(error))


async def unrouted(_: Request, error: Exception) -> Response:
    """What the router answers where it has nothing for a path or for a method."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        return Response(status_code=405, headers={"allow": "GET, HEAD, POST"})
    return no_page()


def no_page() -> Response:
    """The response to programs that ask for what is not there, as early releases of Determined do."""
    return refusal(
        404,
        code="not_found",
        message="no such page; calls are made by POST to /PACKAGE.SERVICE/METHOD, and docs/gateway.md maps "
        "those of Determined's REST API",
    )


def connection_end(status: int, message: str) -> bytes:
    """The last bytes that a connection gets which no application answers.

    Args:
        status: HTTP status.
        message: What is wrong.
    """
    body = message.encode()
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
