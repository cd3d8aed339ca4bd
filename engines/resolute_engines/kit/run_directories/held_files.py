"""The files of ended runs in run directories that this process can read."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from resolute.contracts.files.left_files import as_one_answer, left_files, may_be_read
from resolute.errors import NotFoundError
from resolute_engines.kit.shared_storage import OwnDisk, RunStorage
from resolute_engines.protocol import RunFile

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Else opening a pipe would wait for who writes to it.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class HeldFiles:
    """The files of ended runs in run directories.

    Args:
        runs: Where run directories are.
        storage: Makes the calls on ``runs``.
    """

    def __init__(self, runs: Path, storage: RunStorage | None = None) -> None:
        self._runs = runs
        self._storage = storage or OwnDisk()

    async def list_files(self, allocation_id: str) -> Sequence[RunFile]:
        """Lists the files of an allocation by path, without what holds credentials."""
        return await self._storage.walk(lambda: list_files(self._runs, allocation_id))

    async def read_file(self, allocation_id: str, path: str, *, offset: int, size: int) -> bytes:
        """Reads a part of a file of an allocation.

        Raises:
            NotFoundError: It is none of the listed files.
        """
        return await self._storage.ask(
            allocation_id, lambda: read_file(self._runs, allocation_id, path, offset=offset, size=size)
        )


def list_files(runs: Path, allocation_id: str) -> Sequence[RunFile]:
    """Lists the regular files of an allocation by path; links are not followed.

    Args:
        runs: Where run directories are.
        allocation_id: The allocation.
    """
    folder = runs / allocation_id
    found = (
        (f"{rank}/{path}", size)
        for rank in sorted(_ranks(folder), key=int)
        for path, size in left_files(folder / rank)
    )
    return [RunFile(path, size) for path, size in as_one_answer(found)]


def rank_and_parts(path: str) -> tuple[str, list[str]]:
    """Splits the path of a file that may be listed: the rank of its container, and the way from there.

    Raises:
        NotFoundError: No listed file has such a path.
    """
    rank, *parts = path.split("/")
    if not rank.isdecimal() or not may_be_read(parts):
        raise missing(path)
    return rank, parts


def read_file(runs: Path, allocation_id: str, path: str, *, offset: int, size: int) -> bytes:
    """Reads a part of a file.

    Args:
        runs: Where run directories are.
        allocation_id: The allocation.
        path: As listed.
        offset: First byte.
        size: Most bytes.

    Raises:
        NotFoundError: It is none of the listed files.
    """
    rank, parts = rank_and_parts(path)
    with ExitStack() as opened:

        def step_into(name: str | Path, flags: int, parent: int | None) -> int:
            descriptor = os.open(name, flags, dir_fd=parent)
            opened.callback(os.close, descriptor)
            return descriptor

        try:
            descriptor = step_into(runs / allocation_id / rank, _DIRECTORY, None)
            for part in parts[:-1]:
                descriptor = step_into(part, _DIRECTORY, descriptor)
            descriptor = step_into(parts[-1], _FILE, descriptor)
        except OSError as error:
            raise missing(path) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise missing(path)
        if offset >= os.fstat(descriptor).st_size:
            return b""  # a place that no file can have is an error to the system
        return os.pread(descriptor, size, offset)


def missing(path: str) -> NotFoundError:
    """Says that a path is none of the listed files."""
    return NotFoundError(f"{path!r} is none of the files that the run left; list them to see which are")


def _ranks(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if entry.name.isdecimal()] if folder.is_dir() else []
