"""Limits of request bodies, applied before a body is read."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from resolute.contracts.calls.deadlines import in_time
from resolute.errors import DeadlineError
from resolute_serving.bounds.limits import MAX_MESSAGE_BYTES, limits_of

JSON_FACTOR = 3
"""How many times longer than in binary a request in JSON may be."""
MAX_BODY_BYTES = JSON_FACTOR * MAX_MESSAGE_BYTES
"""Most bytes of any body."""
_ENVELOPE_BYTES = 5
_READ_SECONDS = 60.0


def max_body_bytes(path: str, content_type: str) -> int:
    """Most bytes of the body of a call.

    Args:
        path: Its name.
        content_type: The encoding of its body.
    """
    if "json" in content_type:
        return limits_of(path).message_bytes * JSON_FACTOR + _ENVELOPE_BYTES
    return MAX_MESSAGE_BYTES + _ENVELOPE_BYTES  # the service itself refuses what is too long for the call


class BodyDeadline:
    """Treats a client that takes too long to send a body as disconnected.

    Args:
        app: The application that receives the bodies.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""
        await self._app(scope, _read_in_time(receive), send)


def _read_in_time(receive: Receive) -> Receive:
    """Gives the parts of a body, and then waits for the client to go."""
    deadline = asyncio.get_running_loop().time() + _READ_SECONDS
    whole = False

    async def receive_in_time() -> Message:
        nonlocal whole
        if whole:
            return await receive()
        try:
            left = deadline - asyncio.get_running_loop().time()
            message = await in_time(receive(), left, "the body")
        except DeadlineError:
            return {"type": "http.disconnect"}
        whole = not message.get("more_body", False)
        return message

    return receive_in_time
