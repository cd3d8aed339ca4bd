"""The types of ASGI, and short answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]


async def respond(
    send: Send,
    status: int,
    body: bytes = b"",
    *,
    kind: str = "application/json",
    headers: Iterable[Header] = (),
) -> None:
    """Sends a whole response."""
    own = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": body})


async def refuse(send: Send, status: int, *, code: str, message: str) -> None:
    """Sends an error in the form that errors of calls have."""
    await respond(send, status, json.dumps({"code": code, "message": message}).encode())
