"""Joins commits that arrive in several messages, within bounds, for callers that may commit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from resolute.api.checkpoints.v1.checkpoints_service_pb2 import (
    CommitCheckpointInChunksRequest,
    CommitCheckpointRequest,
)
from resolute.contracts.calls.deadlines import in_time
from resolute.errors import UnavailableError
from resolute_checkpoints.domain.manifest import MAX_FILES
from resolute_serving.validation import invalid

MAX_COMMIT_BYTES = 128 << 20
"""Most bytes of one commit, with an allowance for each entry: about what it takes in memory."""
_ENTRY_BYTES = 64
_SECONDS = 300.0
"""For the first message of a commit, and for the rest together."""
_SENDING = "sending the commit"


class ChunkedCommits:
    """Joins the messages of commits.

    Args:
        owner_of: Returns the trial of a commit's first message. It refuses a caller that may not commit,
            before any part of the commit is stored.
        limit: Most bytes of one commit.
    """

    def __init__(
        self, owner_of: Callable[[CommitCheckpointRequest], Awaitable[str]], *, limit: int = MAX_COMMIT_BYTES
    ) -> None:
        self._owner_of = owner_of
        self._limit = limit
        self._owners: set[str] = set()

    @asynccontextmanager
    async def joined(
        self, stream: AsyncIterator[CommitCheckpointInChunksRequest]
    ) -> AsyncIterator[CommitCheckpointRequest]:
        """Reads all messages of a commit. Other commits of the trial wait until the block ends.

        Raises:
            DeadlineError: They do not arrive in time.
            InvalidArgumentError: They hold too much.
            UnavailableError: Another commit of the trial is under way.
        """
        messages = aiter(stream)
        first = await in_time(anext(messages, None), _SECONDS, _SENDING)
        whole = CommitCheckpointRequest() if first is None else first.chunk
        with self._turn(await self._owner_of(whole)):
            await in_time(self._extend(whole, messages), _SECONDS, _SENDING)
            yield whole

    async def _extend(
        self, whole: CommitCheckpointRequest, messages: AsyncIterator[CommitCheckpointInChunksRequest]
    ) -> None:
        taken = self._cost(whole, before=0)
        async for message in messages:
            taken = self._cost(message.chunk, before=taken)
            whole.files.extend(message.chunk.files)
            whole.multipart_uploads.extend(message.chunk.multipart_uploads)

    @contextmanager
    def _turn(self, owner: str) -> Iterator[None]:
        """Serializes the commits of a trial, so that it takes the memory of only one."""
        if owner in self._owners:
            raise UnavailableError("another commit of this trial is under way; try again when it has ended")
        self._owners.add(owner)
        try:
            yield
        finally:
            self._owners.remove(owner)

    def _cost(self, chunk: CommitCheckpointRequest, *, before: int) -> int:
        tags = sum(len(upload.part_etags) for upload in chunk.multipart_uploads)
        entries = len(chunk.files) + len(chunk.multipart_uploads) + tags
        taken = before + chunk.ByteSize() + entries * _ENTRY_BYTES
        if taken > self._limit:
            message = (
                f"files take more than {self._limit} bytes in the messages of one commit; commit fewer files "
                f"(at most {MAX_FILES}) or shorter paths, such as one archive of many small files"
            )
            raise invalid("files", message)
        return taken
