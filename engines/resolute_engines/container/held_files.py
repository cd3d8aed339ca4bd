"""Lists and reads the files that ended containers left in their volumes."""

from __future__ import annotations

import asyncio
import tarfile
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

import aiohttp

from resolute.contracts.calls.deadlines import in_time
from resolute.contracts.files.left_files import as_one_answer
from resolute.errors import DeadlineError, FailedPreconditionError, ResoluteError, UnavailableError
from resolute_engines.container.client import DockerApi
from resolute_engines.container.containers import Containers, ListedContainer
from resolute_engines.container.files import RUN, json_file
from resolute_engines.kit.run_directories.held_files import missing, rank_and_parts
from resolute_engines.protocol import RunFile

_MOST_OPEN = 16
_END_SECONDS = 30.0
"""How long a container may take to end whose supervisor has reported an end."""
_SKIPPED_BYTES = 1 << 20
"""How much is read at once of what comes before the part that is wanted."""
_FURTHEST = 256 << 20
"""Most bytes that may come before it, where they were not read just before: the engine sends them all."""
_HEADERS = frozenset({tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK})
"""Types of what comes in a tar before the header of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenFile:
    content: aiohttp.StreamReader
    left: int
    """Bytes of it that were not read."""
    close: Callable[[], Awaitable[None]]


class HeldFiles:
    """The files of allocations whose containers have ended.

    Sequential reads of a file share one answer of the daemon, because the daemon returns only whole files. A
    read from a place within a file reads and discards everything before that place. This is done only near
    the beginning of a file, and for one caller at a time.

    Args:
        api: The daemon.
        containers: The containers of allocations.
        list_files: Lists the files of an ended container by running another container; returns a tar with the
            list.
    """

    def __init__(
        self,
        api: DockerApi,
        containers: Containers,
        *,
        list_files: Callable[[ListedContainer], Awaitable[bytes]],
    ) -> None:
        self._api = api
        self._containers = containers
        self._list_files = list_files
        self._listed: dict[str, dict[str, int]] = {}
        """Sizes by path, by allocation. Nothing runs that could change them."""
        self._open: OrderedDict[tuple[str, str, int], _OpenFile] = OrderedDict()
        """Files of which more may be read, by allocation, path, and the place of the next byte."""
        self._skipping = asyncio.Lock()

    async def list_files(self, allocation_id: str) -> Sequence[RunFile]:
        """Lists the files of an allocation by path.

        Raises:
            FailedPreconditionError: What a container left cannot be listed.
            UnavailableError: The engine does not answer, or a container still runs.
        """
        sizes = self._listed.get(allocation_id)
        if sizes is None:
            sizes = {}
            for container in await self._containers.of(allocation_id):
                if container.unbegun:
                    continue
                await self._until_ended(container)
                # An earlier list may be of the trial's own making.
                listed = await self._list_files(container)
                sizes |= await asyncio.to_thread(_sizes, listed, container)
            self._listed[allocation_id] = sizes
        return [RunFile(path, size) for path, size in as_one_answer(sizes.items())]

    async def read_file(self, allocation_id: str, path: str, *, offset: int, size: int) -> bytes:
        """Reads a part of a file.

        Raises:
            FailedPreconditionError: It would begin far within a file that was not read up to there.
            NotFoundError: It is none of the listed files.
            UnavailableError: The engine does not answer.
        """
        await self.list_files(allocation_id)
        # Only what was listed is no link, and leads through none: the engine follows them, as root.
        whole = self._listed[allocation_id].get(path)
        if whole is None:
            raise missing(path)
        if offset >= whole:
            return b""
        opened = self._open.pop((allocation_id, path, offset), None)
        if opened is None:
            if offset > _FURTHEST:
                raise FailedPreconditionError(
                    f"{path} was not read up to byte {offset} just before, and the engine has files as a "
                    "whole only; read it from its beginning on, or from a place within its first "
                    f"{_FURTHEST >> 20} MiB"
                )
            async with self._skipping if offset else nullcontext():
                opened = await self._opened_at(allocation_id, path, offset, whole)
        try:
            data: bytes = await opened.content.readexactly(min(size, opened.left))
        except (asyncio.IncompleteReadError, aiohttp.ClientError, asyncio.TimeoutError) as failure:
            await opened.close()
            raise UnavailableError(f"the engine sent a part of {path} only: {failure!r}") from failure
        except BaseException:
            await opened.close()
            raise
        await self._keep(
            (allocation_id, path, offset + len(data)),
            _OpenFile(content=opened.content, left=opened.left - len(data), close=opened.close),
        )
        return data

    async def forget(self, allocation_id: str) -> None:
        """Forgets the files of an allocation."""
        self._listed.pop(allocation_id, None)
        for key in [key for key in self._open if key[0] == allocation_id]:
            await self._open.pop(key).close()

    async def close(self) -> None:
        """Closes what is open."""
        while self._open:
            await self._open.popitem()[1].close()

    async def _until_ended(self, container: ListedContainer) -> None:
        # Its supervisor reported the end a moment before its own.
        try:
            await in_time(self._api.until_stopped(container.name), _END_SECONDS, container.name)
        except DeadlineError:
            raise UnavailableError(f"container {container.name} has not ended") from None

    async def _opened_at(self, allocation_id: str, path: str, offset: int, size: int) -> _OpenFile:
        rank, parts = rank_and_parts(path)
        name = self._containers.name(allocation_id, int(rank))
        async with AsyncExitStack() as stack:
            content = await stack.enter_async_context(self._api.open_archive(name, "/".join((RUN, *parts))))
            await _to_content(content)
            to_skip = offset
            while to_skip:
                to_skip -= len(await content.readexactly(min(to_skip, _SKIPPED_BYTES)))
            return _OpenFile(content=content, left=size - offset, close=stack.pop_all().aclose)
        raise AssertionError("the stack hides no exception")

    async def _keep(self, key: tuple[str, str, int], opened: _OpenFile) -> None:
        if not opened.left:
            await opened.close()
            return
        earlier = self._open.pop(key, None)
        if earlier is not None:
            await earlier.close()
        self._open[key] = opened
        while len(self._open) > _MOST_OPEN:
            # Who reads many files closes none of others.
            ((busiest, _),) = Counter(allocation for allocation, *_ in self._open).most_common(1)
            oldest = next(key for key in self._open if key[0] == busiest)
            await self._open.pop(oldest).close()


async def _to_content(archive: aiohttp.StreamReader) -> None:
    """Reads a tar up to the content of its first file.

    Raises:
        FailedPreconditionError: There is none.
    """
    while True:
        try:
            header = tarfile.TarInfo.frombuf(
                await archive.readexactly(tarfile.BLOCKSIZE), tarfile.ENCODING, "surrogateescape"
            )
        except (tarfile.HeaderError, asyncio.IncompleteReadError) as failure:
            raise FailedPreconditionError(f"the engine gave no file: {failure}") from failure
        if header.isreg():
            return
        if header.type not in _HEADERS:
            raise FailedPreconditionError("the engine gave something else than a file")
        await archive.readexactly(-(-header.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE)


def _sizes(archive: bytes, container: ListedContainer) -> dict[str, int]:
    """Sizes by path, with the rank of the container first.

    Raises:
        FailedPreconditionError: The archive has no list of files.
    """
    try:
        listed: Any = json_file(archive)
        sizes = {f"{container.rank}/{path}": int(size) for path, size in listed or ()}
        for path in sizes:
            rank_and_parts(path)
    except (tarfile.TarError, ValueError, TypeError, ResoluteError) as failure:
        raise FailedPreconditionError(
            f"the list of what {container.name} left cannot be read: {failure}"
        ) from failure
    return sizes
