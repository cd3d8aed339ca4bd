"""Merges the watches of several services into one stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import grpc

from resolute.api.gateway.v1 import gateway_service_pb2 as pb
from resolute.contracts.tasks import end_tasks
from resolute.errors import ResoluteError, UnavailableError
from resolute_gateway.watch.parts import Wanted, wanted_by
from resolute_serving.server.channels.peers import to_error

Metadata = Sequence[tuple[str, str]]
ChannelOf = Callable[[str], grpc.aio.Channel | None]
_BUFFERED = 16
"""Messages that wait for a slow reader; then the services wait."""


class MergedWatches:
    """Opens merged watches for callers, until it is closed.

    Args:
        channel_of: Returns the channel to the service of a call, without a token of its own.
    """

    def __init__(self, channel_of: ChannelOf) -> None:
        self._channel_of = channel_of
        self._open: set[asyncio.Queue[pb.WatchResponse | ResoluteError]] = set()
        self._closed = False

    async def watch(self, request: pb.WatchRequest, metadata: Metadata) -> AsyncIterator[pb.WatchResponse]:
        """Yields the news of all parts until the last one has ended, and of each at once that it is open.

        Args:
            request: What to watch.
            metadata: The caller's token and trace, with which each service is called.

        Raises:
            InvalidArgumentError: Nothing is asked for, or views are wrong.
            UnauthenticatedError: The token has ended, or is none.
            UnavailableError: The gateway stops.
        """
        wanted = wanted_by(request)
        news: asyncio.Queue[pb.WatchResponse | ResoluteError] = asyncio.Queue(_BUFFERED)
        readers = [asyncio.create_task(self._read(stream, metadata, news)) for stream in wanted]
        self._open.add(news)
        under_way = len(wanted)
        try:
            while under_way:
                item = await news.get()
                if self._closed:
                    raise UnavailableError("the gateway stops; connect again")
                if isinstance(item, ResoluteError):
                    raise item
                yield item
                under_way -= item.HasField("end")
        finally:
            self._open.discard(news)
            await end_tasks(*readers)

    def close(self) -> None:
        """Ends all watches with the request to connect again."""
        self._closed = True
        for news in self._open:
            while not news.empty():  # what waits is sent again from the cursor that the caller has
                news.get_nowait()
            news.put_nowait(UnavailableError("the gateway stops; connect again"))

    async def _read(
        self, wanted: Wanted, metadata: Metadata, news: asyncio.Queue[pb.WatchResponse | ResoluteError]
    ) -> None:
        part, view = wanted.part, wanted.view
        channel = self._channel_of(part.path)
        if channel is None:
            await news.put(UnavailableError(f"the gateway has no address of the service of {part.path}"))
            return
        call: Any = channel.unary_stream(
            part.path,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=part.response.FromString,
        )(wanted.request, metadata=metadata)
        end = pb.WatchResponse.PartEnd(part=part.kind)
        try:
            await call.initial_metadata()
            if not call.done():  # the service has let the call in, and may have no news yet
                await news.put(pb.WatchResponse(view=view))
            async for response in call:
                await news.put(part.wrapped(response, view))
        except grpc.aio.AioRpcError as failure:
            if failure.code() is grpc.StatusCode.UNAUTHENTICATED:
                await news.put(to_error(failure))
                return
            end.code, end.message = failure.code().value[0], failure.details() or ""
        finally:
            call.cancel()
        await news.put(pb.WatchResponse(end=end, view=view))
