"""Counts open streams, and ends each one when the token that opened it expires or is revoked."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager

import structlog

from resolute.contracts.tasks import end_tasks
from resolute.errors import ResoluteError, UnavailableError
from resolute_serving.auth.tokens import TokenVerifier, VerifiedToken
from resolute_serving.bounds.streams import StreamCounts, StreamLimits
from resolute_serving.context import Anonymous, ServiceAccount
from resolute_serving.notifier import Subscription

_CHECK_SECONDS = 0.4
_SERVICES_SECONDS = 2.0
"""Between two checks while all streams are those of services, which every cluster has."""
_log = structlog.get_logger("access")


class OpenStreams:
    """The open streams of a server. It limits their number, and ends those whose token has ended.

    Args:
        verifier: Tells which tokens have ended.
        limits: Limits of open streams.
        sleep: Waits for the next check of the streams of users and runs.
    """

    def __init__(
        self,
        verifier: TokenVerifier,
        *,
        limits: StreamLimits,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._verifier = verifier
        self._counts = StreamCounts(limits)
        self._sleep = sleep
        # By token: thousands of streams have a few, which are asked for several times a second.
        self._streams: dict[VerifiedToken, set[_Stream]] = {}
        self._opened = Subscription[None]()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to check."""
        self._task = asyncio.create_task(self._run(), name="open-streams")

    async def stop(self) -> None:
        """Ends the checks; the streams stay as they are."""
        await end_tasks(self._task)

    @contextmanager
    def registered(self, token: VerifiedToken | None, *, address: str) -> Iterator[None]:
        """The current task serves a stream of this token until the block ends.

        Args:
            token: Token of the caller; None for a caller without one, whose streams do not end.
            address: Of the caller.

        Raises:
            QuotaError: The caller has as many streams as it may.
            UnavailableError: The server has as many as it may.
            UnauthenticatedError: The token has ended meanwhile.
        """
        with self._counts.counted(Anonymous() if token is None else token.principal, address):
            task = asyncio.current_task()
            if token is None or task is None:
                yield
            else:
                with self._ended_with(token, _Stream(task)):
                    yield

    @contextmanager
    def _ended_with(self, token: VerifiedToken, stream: _Stream) -> Iterator[None]:
        streams = self._streams.setdefault(token, set())
        streams.add(stream)
        self._opened.add(None)
        try:
            yield
        except asyncio.CancelledError:
            if stream.failure is None:
                raise
            raise stream.failure from None
        finally:
            streams.discard(stream)
            if not streams and self._streams.get(token) is streams:
                del self._streams[token]

    async def check(self) -> None:
        """Ends the streams whose tokens have ended."""
        for token, streams in list(self._streams.items()):
            try:
                await self._verifier.check_current(token)
            except ResoluteError as failure:
                _end(streams, failure)

    def end(self) -> None:
        """Ends the streams that are open still when the server stops: those that wait for a client."""
        for streams in list(self._streams.values()):
            _end(streams, UnavailableError("the service stops; call again, from what came last"))

    async def _run(self) -> None:
        while True:
            await self._pause()
            try:
                await self.check()
            except Exception:  # noqa: BLE001 - without the next check, streams would outlive their tokens
                _log.exception("a check of open streams failed by a defect")

    async def _pause(self) -> None:
        """Waits until the streams are to be checked: as long as there are none, there is nothing to do."""
        if not self._streams:
            await self._opened.wait(math.inf)
        if all(isinstance(token.principal, ServiceAccount) for token in self._streams):
            await self._opened.wait(_SERVICES_SECONDS)
        else:
            await self._sleep(_CHECK_SECONDS)


def _end(streams: Iterable[_Stream], failure: ResoluteError) -> None:
    for stream in list(streams):
        if stream.failure is None:
            stream.failure = failure
            stream.task.cancel()


class _Stream:
    def __init__(self, task: asyncio.Task[object]) -> None:
        self.task = task
        self.failure: ResoluteError | None = None
