"""The calls to services for a browser's GET, with the permissions of its user."""

from __future__ import annotations

from collections.abc import Callable

import grpc
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from resolute_gateway.web.answers import refusal
from resolute_gateway.web.callers import current_caller
from resolute_serving.auth.forwarded_peers import ForwardedPeers

_STATUSES = {
    grpc.StatusCode.UNAUTHENTICATED: (401, "unauthenticated"),
    grpc.StatusCode.PERMISSION_DENIED: (403, "permission_denied"),
    grpc.StatusCode.INVALID_ARGUMENT: (400, "invalid_argument"),
    grpc.StatusCode.NOT_FOUND: (404, "not_found"),
    grpc.StatusCode.FAILED_PRECONDITION: (409, "failed_precondition"),
    grpc.StatusCode.DATA_LOSS: (410, "data_loss"),
}


class Forwarding:
    """Builds the metadata of calls.

    Args:
        peers: Names the caller to the services.
        authorized: Adds the session's token to a request from a page of this origin.
    """

    def __init__(self, peers: ForwardedPeers, *, authorized: Callable[[Scope], Scope]) -> None:
        self._peers = peers
        self._authorized = authorized

    def metadata(self, request: Request) -> tuple[tuple[str, str], ...]:
        """Returns what a call for a request says of its user and where it comes from."""
        headers = Request(self._authorized(request.scope)).headers
        token = headers.get("authorization", "")
        return (("authorization", token), *self._peers.metadata(current_caller.get()))


def refusal_of(failure: grpc.aio.AioRpcError) -> Response:
    """Answers a request whose call failed."""
    status, code = _STATUSES.get(failure.code(), (503, "unavailable"))
    return refusal(status, code=code, message=failure.details() or "the service gave no reason")
