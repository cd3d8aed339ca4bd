"""Handlers of the calls about the server: its settings and its log."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from resolute.api.experiments.v1 import cluster_service_pb2 as pb2
from resolute.contracts.values import to_value
from resolute_experiments.context import ServiceContext
from resolute_serving.following import PollIntervals, Turn, follow
from resolute_serving.observability.recent_lines import MOST_LINES, RECENT_LINES, LoggedLine
from resolute_serving.validation import invalid

_PACE = PollIntervals(recheck=0.5, heartbeat=15.0)
_LINES_A_MESSAGE = 100


class ServerHandlers:
    """The part of ClusterService about the server.

    Args:
        core: The context that all handlers share.
        settings: The settings with which the server was started, without secrets.
    """

    def __init__(self, core: ServiceContext, *, settings: Mapping[str, Any]) -> None:
        self._core = core
        self._settings = settings

    async def GetServerConfig(
        self, request: pb2.GetServerConfigRequest, context: Any
    ) -> pb2.GetServerConfigResponse:
        """Returns the settings."""
        level = logging.getLevelName(logging.getLogger().level)
        return pb2.GetServerConfigResponse(config=to_value({**self._settings, "log_level": level}))

    async def FollowServerLog(
        self, request: pb2.FollowServerLogRequest, context: Any
    ) -> AsyncIterator[pb2.FollowServerLogResponse]:
        """Sends the last lines, then new ones."""
        if not 0 <= request.tail <= MOST_LINES:
            raise invalid("tail", f"tail is {request.tail}; it must be from 0 to {MOST_LINES}")
        lines = RECENT_LINES.after(0)
        seen = lines[-1].sequence if lines else 0
        for response in _responses(lines[-request.tail :]):
            yield response
        if not request.follow:
            return

        async def look(_: Turn[None]) -> AsyncGenerator[pb2.FollowServerLogResponse, None]:
            nonlocal seen
            if lines := RECENT_LINES.after(seen):
                seen = lines[-1].sequence
                for response in _responses(lines):
                    yield response

        responses = follow(
            [None],
            look,
            topics=lambda _: (),
            notifier=self._core.notifier,
            clock=self._core.clock,
            pace=_PACE,
            quiet=pb2.FollowServerLogResponse(),
        )
        async for response in responses:
            yield response


def _responses(lines: Sequence[LoggedLine]) -> Iterator[pb2.FollowServerLogResponse]:
    """Lines in messages that are not too large; one without lines if there are none."""
    for first in range(0, max(len(lines), 1), _LINES_A_MESSAGE):
        part = lines[first : first + _LINES_A_MESSAGE]
        yield pb2.FollowServerLogResponse(lines=[line.text for line in part])
