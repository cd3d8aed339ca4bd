"""The files of a run directory that users may read: the output of its processes, without credentials."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

LISTING = "files.json"
"""The file of a run directory that lists the others, where they are only seen from a container."""
MOST_FILES = 10_000
"""How many are listed of a run directory."""
_PATH_BYTES = 2 << 20
"""Of all paths that are listed: clients take answers of 4 MiB."""
MOST_ENTRIES = 100_000
"""How many files and folders are looked at to list them: a script may have made any number."""
_FOLDERS = ("work", "flight")
_FILES = ("stacks", "supervisor.log", "exit.json")
_DEPTH = 64


def left_files(run: Path) -> list[tuple[str, int]]:
    """Lists the regular files of a run directory by path, with their sizes; links are not followed."""
    return as_one_answer(_left(run))


def as_one_answer(files: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """As many of the first files, by path with their sizes, as one answer may list."""
    found: list[tuple[str, int]] = []
    room = _PATH_BYTES
    for path, size in islice(files, MOST_FILES):
        room -= len(path.encode())
        if room < 0:
            break
        found.append((path, size))
    return found


def may_be_read(parts: Sequence[str]) -> bool:
    """Whether the parts of a path may lead to a listed file."""
    named = bool(parts) and (parts[0] in _FOLDERS or list(parts) in [[name] for name in _FILES])
    return named and not any(part in {"", ".", ".."} or "\0" in part for part in parts)


def _left(run: Path) -> Iterator[tuple[str, int]]:
    if run.is_symlink():
        return
    for name in _FILES:
        if (size := _size(run / name)) is not None:
            yield name, size
    budget = iter(range(MOST_ENTRIES))
    for name in _FOLDERS:
        yield from _below(run / name, name, depth=_DEPTH, budget=budget)


def _below(folder: Path, path: str, *, depth: int, budget: Iterator[int]) -> Iterator[tuple[str, int]]:
    if not depth or folder.is_symlink() or not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        looked_at = [entry for _, entry in zip(budget, entries, strict=False)]
    for entry in sorted(looked_at, key=lambda entry: entry.name):
        if not entry.name.isprintable():
            continue  # names that are no text have no place in a message
        if entry.is_dir(follow_symlinks=False):
            yield from _below(folder / entry.name, f"{path}/{entry.name}", depth=depth - 1, budget=budget)
        elif entry.is_file(follow_symlinks=False):
            yield f"{path}/{entry.name}", entry.stat(follow_symlinks=False).st_size


def _size(file: Path) -> int | None:
    try:
        status = file.lstat()
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
