"""Keeps the signals of the experiments service in memory, also during outages of that service."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, cast

import structlog

from resolute.api.experiments.v1.allocations_service_pb2 import (
    FollowSignalChangesRequest,
    FollowSignalChangesResponse,
)
from resolute.api.experiments.v1.allocations_service_pb2_grpc import AllocationsServiceStub
from resolute.contracts.calls.backoff import Backoff
from resolute.errors import DeadlineError, ResoluteError, UnavailableError
from resolute_preemption.latest_signals import LatestSignals
from resolute_preemption.settings import PreemptionSettings
from resolute_serving.server.channels.peers import Peers

if TYPE_CHECKING:
    from resolute.api.experiments.v1.allocations_service_pb2_grpc import AllocationsServiceAsyncStub

_log = structlog.get_logger("follower")


class SignalFollower:
    """Follows one stream of the experiments service, from ``start`` to ``stop``.

    During an outage of that service the signals stay valid until they are replaced.

    Args:
        peers: Channels to the other services.
        signals: Receives the signals.
        settings: Settings of the waits.
    """

    def __init__(self, *, peers: Peers, signals: LatestSignals, settings: PreemptionSettings) -> None:
        self._peers = peers
        self._signals = signals
        self._settings = settings
        self._task: asyncio.Task[None] | None = None
        self._following = False

    def start(self) -> None:
        """Begins to follow."""
        self._task = asyncio.create_task(self._run(), name="preemption-follower")

    async def stop(self) -> None:
        """Ends the stream."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        backoff = Backoff(first=self._settings.first_pause, longest=self._settings.longest_pause)
        while True:
            self._following = False
            try:
                await self._follow()
            except ResoluteError as error:
                if self._following and isinstance(error, DeadlineError):
                    # The stream reached its lifetime: the next one begins with what is alive now.
                    continue
                self._note(error, first=backoff.failures == 0)
            except Exception:  # noqa: BLE001 - signals must flow again, whatever it was
                _log.exception("following failed by a defect")
            if self._following:
                backoff.succeeded()
            await asyncio.sleep(backoff.failed())

    async def _follow(self) -> None:
        channel = self._peers.channel("experiments")
        stub = cast("AllocationsServiceAsyncStub", AllocationsServiceStub(channel))
        call = stub.FollowSignalChanges(FollowSignalChangesRequest(), timeout=self._settings.lifetime)
        try:
            async with contextlib.aclosing(self._with_silence_timeout(aiter(call))) as responses:
                async for response in responses:
                    self._take(response)
        finally:
            call.cancel()

    async def _with_silence_timeout(
        self, responses: AsyncIterator[FollowSignalChangesResponse]
    ) -> AsyncGenerator[FollowSignalChangesResponse, None]:
        while True:
            # Unlike wait_for, wait never swallows the cancellation by which this task is ended.
            reading = asyncio.ensure_future(_next(responses))
            try:
                await asyncio.wait({reading}, timeout=self._settings.silence_timeout)
            finally:
                silent = not reading.done()
                reading.cancel()
            if silent:
                raise UnavailableError(
                    f"the experiments service was silent for {self._settings.silence_timeout:g} s"
                )
            response = reading.result()
            if response is None:
                raise UnavailableError("the experiments service ended the stream")
            yield response

    def _take(self, response: FollowSignalChangesResponse) -> None:
        if response.reset or not self._following:
            self._signals.replace(response.signals)
        else:
            self._signals.update(response.signals)
        if not self._following:
            self._following = True
            _log.info("following the experiments service", allocations=len(response.signals))

    def _note(self, error: ResoluteError, *, first: bool) -> None:
        # One line an outage at the level that people see; the rest for those who look closer.
        (_log.warning if first or self._following else _log.debug)(
            "the experiments service cannot be followed; signals stand as they are", reason=str(error)
        )


async def _next(responses: AsyncIterator[FollowSignalChangesResponse]) -> FollowSignalChangesResponse | None:
    return await anext(responses, None)
