"""Bounds how many requests of a kind are answered at the same time."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from resolute_gateway.web.answers import refusal

_WAIT_SECONDS = 20.0


class AtMost:
    """Answers some requests at the same time. One more waits for its turn, for a while.

    A request counts until its answer was sent: until then its content takes memory.

    Args:
        app: Answers them.
        most: How many at the same time.
        what: Names what is sent, in the plural.
        wait: Seconds that a request waits.
    """

    def __init__(self, app: ASGIApp, *, most: int, what: str, wait: float = _WAIT_SECONDS) -> None:
        self._app = app
        self._most = most
        self._what = what
        self._wait = wait
        self._turns = asyncio.Semaphore(most)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        try:
            # Before Python 3.12 it may lose a cancellation that comes with the turn, but never the turn.
            await asyncio.wait_for(self._turns.acquire(), self._wait)
        except asyncio.TimeoutError:
            message = f"{self._most} {self._what} are being sent at once, no more are; try again later"
            await refusal(429, code="resource_exhausted", message=message)(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            self._turns.release()
