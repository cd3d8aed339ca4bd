"""The files of a run that people may look at: what its processes wrote, and nothing that signs in."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path

from resolute.errors import NotFoundError
from resolute_engines.protocol import RunFile

_FOLDERS = ("work", "flight")
_FILES = ("stacks", "supervisor.log", "exit.json")
_MOST_FILES = 10_000
_DEPTH = 64
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Else opening a pipe would wait for who writes to it.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def list_files(runs: Path, allocation_id: str) -> Sequence[RunFile]:
    """Lists the regular files of an allocation by path; links are not followed.

    Args:
        runs: Where run directories are.
        allocation_id: The allocation.
    """
    ranks = sorted(_ranks(runs / allocation_id), key=int)
    found = chain.from_iterable(_of_container(runs / allocation_id / rank, rank) for rank in ranks)
    return list(islice(found, _MOST_FILES))


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
    rank, *parts = path.split("/")
    allowed = rank.isdecimal() and parts and (parts[0] in _FOLDERS or parts in [[name] for name in _FILES])
    if not allowed or any(part in {"", ".", ".."} or "\0" in part for part in parts):
        raise _missing(path)
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
            raise _missing(path) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _missing(path)
        return os.pread(descriptor, size, offset)


def _ranks(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if entry.name.isdecimal()] if folder.is_dir() else []


def _of_container(folder: Path, rank: str) -> Iterator[RunFile]:
    for name in _FILES:
        if (size := _size(folder / name)) is not None:
            yield RunFile(f"{rank}/{name}", size)
    for name in _FOLDERS:
        yield from _below(folder / name, f"{rank}/{name}", depth=_DEPTH)


def _below(folder: Path, path: str, *, depth: int) -> Iterator[RunFile]:
    if not depth or folder.is_symlink() or not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        if not entry.name.isprintable():
            continue  # names that are no text have no place in a message
        if entry.is_dir(follow_symlinks=False):
            yield from _below(folder / entry.name, f"{path}/{entry.name}", depth=depth - 1)
        elif entry.is_file(follow_symlinks=False):
            yield RunFile(f"{path}/{entry.name}", entry.stat(follow_symlinks=False).st_size)


def _size(file: Path) -> int | None:
    try:
        status = file.lstat()
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _missing(path: str) -> NotFoundError:
    return NotFoundError(f"{path!r} is none of the files that the run left; list them to see which are")
