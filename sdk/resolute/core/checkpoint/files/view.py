"""Gives scripts their own view of the files of a committed checkpoint.

Renaming, removing or adding files in the view does not change the checkpoint. Files are clones where the file
system supports them; clones share their bytes until one is written to. Elsewhere they are read-only hard
links.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from resolute.core.checkpoint.files.manifest import (
    VIEW_PREFIX,
    Selector,
    list_directory,
    make_directories,
)
from resolute.core.checkpoint.files.protection import protect

_CLONE_FILE = 0x40049409
"""The request FICLONE, for which Python has no name."""
_MOST_COPIED = 512 << 20
"""Bytes of the largest checkpoint that is copied where nothing else keeps root from overwriting it."""
_log = logging.getLogger("resolute.core")


@contextlib.contextmanager
def view_of(checkpoint: Path, selector: Selector | None = None) -> Iterator[Path]:
    """Yields a directory of this process alone with the files of a checkpoint.

    Args:
        checkpoint: The directory in which the checkpoint is committed. It is yielded itself where this
            process may make nothing in it, and so can neither rename nor remove anything.
        selector: Says of each path whether it is wanted.
    """
    with contextlib.ExitStack() as stack:
        directory = checkpoint
        try:
            own = Path(tempfile.mkdtemp(prefix=VIEW_PREFIX, dir=checkpoint))
            stack.callback(shutil.rmtree, own, ignore_errors=True)
            wanted = [path for path in list_directory(checkpoint) if selector is None or selector(path)]
            # Scripts that take the identifier from the directory's name find it.
            directory = _filled(own / checkpoint.name, wanted, checkpoint)
        except OSError as failure:
            if os.access(checkpoint, os.W_OK):
                _log.warning(
                    "the files of checkpoint %s can have no names of the script's own (%s): it must neither "
                    "rename nor remove them",
                    checkpoint.name,
                    failure,
                )
        yield directory


def has_to_be_copied(checkpoint: Path, paths: Iterable[str]) -> bool:
    """Whether only a copy keeps this process from overwriting a committed checkpoint, and is affordable.

    Root can write to read-only files, and so to what a hard link leads to.

    Args:
        checkpoint: The directory of the checkpoint.
        paths: Its files, and directories with a slash at the end.
    """
    files = [f"{checkpoint}/{path}" for path in paths if not path.endswith("/")]
    protect(checkpoint, paths)
    if not any(os.access(file, os.W_OK) for file in files) or _clones_in(checkpoint):
        return False
    size = sum(os.stat(file).st_size for file in files)  # noqa: PTH116 - for 100 000 files
    temporary = tempfile.gettempdir()
    if size <= min(_MOST_COPIED, shutil.disk_usage(temporary).free // 2):
        return True
    _log.warning(
        "checkpoint %s is too large to be copied to %s: as root this process could overwrite its files, so "
        "open them for reading only",
        checkpoint.name,
        temporary,
    )
    return False


def _filled(target: Path, paths: list[str], source: Path) -> Path:
    give: Callable[[str, str], None] = _clone if _clones_in(target.parent) else os.link
    target.mkdir()
    make_directories(target, paths)
    for path in paths:
        if not path.endswith("/"):
            name = f"{source}/{path}"
            # A link of its own would lead elsewhere from here.
            give(os.path.realpath(name) if os.path.islink(name) else name, f"{target}/{path}")  # noqa: PTH114 - for 100 000 files
    return target


def _clones_in(directory: Path) -> bool:
    """Whether the file system shares the bytes of files until one of them is written to."""
    try:
        with tempfile.TemporaryDirectory(dir=directory, prefix=VIEW_PREFIX) as probe:
            source = Path(probe, "source")
            source.touch()
            _clone(str(source), f"{probe}/target")
    except OSError:
        return False
    return True


def _clone(source: str, target: str) -> None:
    with Path(source).open("rb") as given, Path(target).open("xb") as made:
        fcntl.ioctl(made.fileno(), _CLONE_FILE, given.fileno())
