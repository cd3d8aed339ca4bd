"""Limits the number of requests of one kind that are answered at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from weakref import WeakValueDictionary

from starlette.types import ASGIApp, Receive, Scope, Send

from resolute.contracts.calls.deadlines import in_time
from resolute.errors import DeadlineError
from resolute_gateway.web.answers import refusal

_WAIT_SECONDS = 20.0
_SHARE = 4
"""One caller has a quarter of the turns: who takes nothing of what is sent keeps no others from theirs."""


class AtMost:
    """Answers a limited number of requests at the same time. Further ones wait for a limited time.

    A request counts until its response is sent, because until then its content takes memory.

    Args:
        app: The application that answers requests.
        most: Largest number of requests at the same time.
        what: Name of the responses, in the plural, for messages.
        caller: Returns the name of a request's caller.
        wait: Longest wait of a request, in seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        most: int,
        what: str,
        caller: Callable[[Scope], str],
        wait: float = _WAIT_SECONDS,
    ) -> None:
        self._app = app
        self._most = most
        self._what = what
        self._caller = caller
        self._wait = wait
        self._turns = asyncio.Semaphore(most)
        self._of_caller: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        share = max(1, self._most // _SHARE)
        own = self._of_caller.setdefault(self._caller(scope), asyncio.Semaphore(share))

        async def take() -> None:
            await turns.enter_async_context(own)
            await turns.enter_async_context(self._turns)

        # Given back here: what `in_time` cancels may have taken a turn already.
        async with AsyncExitStack() as turns:
            try:
                await in_time(take(), self._wait, self._what)
            except DeadlineError:
                message = (
                    f"the gateway sends at most {self._most} {self._what} at once, "
                    f"and at most {share} to one caller; try again later"
                )
                await refusal(429, code="resource_exhausted", message=message)(scope, receive, send)
                return
            await self._app(scope, receive, send)
