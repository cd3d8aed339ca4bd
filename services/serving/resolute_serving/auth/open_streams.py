"""Open streams end when the token that opened them does: it expired, or was revoked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import structlog

from resolute.errors import ResoluteError
from resolute_serving.auth.tokens import TokenVerifier, VerifiedToken

_CHECK_SECONDS = 0.4
_log = structlog.get_logger("access")


class OpenStreams:
    """Knows the open streams of a server, and ends those whose token has ended.

    Args:
        verifier: Knows which tokens have ended.
        sleep: Waits for the next check.
    """

    def __init__(
        self, verifier: TokenVerifier, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._verifier = verifier
        self._sleep = sleep
        self._streams: set[_Stream] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to check."""
        self._task = asyncio.create_task(self._run(), name="open-streams")

    async def stop(self) -> None:
        """Ends the checks; the streams stay as they are."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @contextmanager
    def registered(self, token: VerifiedToken | None) -> Iterator[None]:
        """The current task serves a stream of this token until the block ends.

        Args:
            token: What the caller gave; None for a caller without one, whose streams do not end.

        Raises:
            UnauthenticatedError: The token has ended meanwhile.
        """
        task = asyncio.current_task()
        if token is None or task is None:
            yield
            return
        stream = _Stream(token, task)
        self._streams.add(stream)
        try:
            yield
        except asyncio.CancelledError:
            if stream.failure is None:
                raise
            raise stream.failure from None
        finally:
            self._streams.discard(stream)

    async def check(self) -> None:
        """Ends the streams whose tokens have ended."""
        for stream in list(self._streams):
            try:
                await self._verifier.check_current(stream.token)
            except ResoluteError as failure:
                if stream in self._streams and stream.failure is None:
                    stream.failure = failure
                    stream.task.cancel()

    async def _run(self) -> None:
        while True:
            await self._sleep(_CHECK_SECONDS)
            try:
                await self.check()
            except Exception:  # noqa: BLE001 - without the next check, streams would outlive their tokens
                _log.exception("a check of open streams failed by a defect")


class _Stream:
    def __init__(self, token: VerifiedToken, task: asyncio.Task[object]) -> None:
        self.token = token
        self.task = task
        self.failure: ResoluteError | None = None
