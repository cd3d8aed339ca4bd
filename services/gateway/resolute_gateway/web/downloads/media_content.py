"""The content of one media object that a trial logged, for the page and other clients.

Scripts determine the content. The service derives its type from its first bytes, and accepts no type that a
browser executes. A browser shows the response as that type or not at all, in a sandbox without scripts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from resolute.api.checkpoints.v1 import media_service_pb2 as pb2
from resolute.api.checkpoints.v1 import media_service_pb2_grpc
from resolute_gateway.backends import Backends
from resolute_gateway.web.answers import refusal
from resolute_gateway.web.downloads.forwarding import Forwarding, refusal_of

PATH = "/media/{trial_id}/{media_id:int}"
_SERVICE = "/resolute.api.checkpoints.v1.MediaService/GetMedia"
_SECONDS = 30.0
_LARGEST_ID = 2**63 - 1
_SHOWN = frozenset(
    {
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "audio/wav",
        "audio/mpeg",
        "audio/ogg",
        "audio/flac",
    }
)
"""Types that a browser may show by themselves; all others are downloads."""
_HEADERS = {
    "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    # The content of an id never changes. Another session, and a token, ask again.
    "cache-control": "private, max-age=3600, immutable",
    "vary": "Cookie, Authorization",
}


class MediaContent:
    """Answers requests for contents.

    Args:
        backends: The services.
        authorized: Adds the session's token to a request from a page of this origin.
    """

    def __init__(self, backends: Backends, *, authorized: Callable[[Scope], Scope]) -> None:
        self._channel = backends.channel(_SERVICE)
        self._forwarding = Forwarding(backends.peers, authorized=authorized)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with the content, or with 304 to a browser that has it."""
        response = await self._response(Request(scope))
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        trial, number = request.path_params["trial_id"], request.path_params["media_id"]
        if self._channel is None or number > _LARGEST_ID:
            return refusal(404, code="not_found", message="there is no such media")
        stub: Any = media_service_pb2_grpc.MediaServiceStub(self._channel)
        try:
            found = await stub.GetMedia(
                pb2.GetMediaRequest(trial_id=trial, media_id=number),
                metadata=self._forwarding.metadata(request),
                timeout=_SECONDS,
            )
        except grpc.aio.AioRpcError as failure:
            return refusal_of(failure)
        media = found.media
        headers = {**_HEADERS, "etag": f'"{media.digest}"'}
        if headers["etag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        shown = media.content_type in _SHOWN
        headers["content-disposition"] = "inline" if shown else f'attachment; filename="{media.media_id}"'
        kind = media.content_type if shown else "application/octet-stream"
        return Response(media.content, media_type=kind, headers=headers)
