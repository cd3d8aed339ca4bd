"""Moves the files of a checkpoint that is written directly into its store out of the script's reach.

A script writes to a subdirectory of the checkpoint's directory. At the end of its block the files move one
level up, so paths that the script has kept no longer exist. Files that could still be changed in other ways
are refused.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from resolute.errors import FailedPreconditionError

_WRITTEN = ".resolute-writing"
"""What the script writes to, in the directory of the checkpoint: an abandoned one is removed as a whole."""
_WRITABLE = 0o222
_MAPPED_FILE = 6
"""Fields of a line about a mapping that has a file: where, rights, offset, device, inode, path."""


def directory_to_write(checkpoint: Path) -> Path:
    """Makes the directory that a script writes to, of a checkpoint that has the other one."""
    directory = checkpoint / _WRITTEN
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def take_over(written: Path) -> Path:
    """Moves what was written to where it is committed, out of the script's reach; returns that directory."""
    checkpoint = written.parent
    for path in list(written.iterdir()):
        path.rename(checkpoint / path.name)
    written.rmdir()
    return checkpoint


def check_closed(directory: Path) -> None:
    """Checks that neither this process nor one that it started can write to a file of a directory.

    Raises:
        FailedPreconditionError: One holds a file open or mapped into memory for writing, so the file is not
            complete, and would change after the commit.
    """
    root = f"{directory.resolve()}/"
    own = os.getpid()
    for process in _family(own):
        for target in _writable(Path(f"/proc/{process}")):
            if target.startswith(root) and not _is_removed(target):
                name = target.removeprefix(root)
                where = "" if process == own else f" in process {process}, which this one started"
                raise FailedPreconditionError(
                    f"{name} is still open for writing{where}, so the checkpoint would be committed without "
                    "all of it: close it before the block of store_path() ends"
                )


def own_files(directory: Path) -> None:
    """Sees to it that a directory which becomes a checkpoint itself is all that its files belong to.

    A file that has another name elsewhere, a hard link, is copied.

    Raises:
        FailedPreconditionError: A link leads elsewhere, where files change and vanish without the checkpoint,
            or by an absolute path, which leads elsewhere once the checkpoint is copied.
    """
    root = directory.resolve()
    for folder, folders, files in os.walk(directory):
        for path in (Path(folder, name) for name in (*folders, *files)):
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                _check_link(path, root=root, name=path.relative_to(directory))
            elif stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                copy = path.with_name(f"{path.name}.resolute-copy")
                shutil.copy2(path, copy)
                copy.replace(path)


def protect(directory: Path, paths: Iterable[str]) -> None:
    """Makes committed files read-only: opening one to write to it fails, and does no damage."""
    for path in paths:
        if not path.endswith("/"):
            with contextlib.suppress(PermissionError):  # another user's
                name = f"{directory}/{path}"
                mode = os.stat(name).st_mode  # noqa: PTH116 - for 100 000 files
                if mode & _WRITABLE:
                    os.chmod(name, mode & ~_WRITABLE)  # noqa: PTH101 - likewise


def _check_link(path: Path, *, root: Path, name: Path) -> None:
    target = path.readlink()
    try:
        outside = not path.resolve().is_relative_to(root)
    except (RuntimeError, OSError):
        outside = True  # links that lead to each other
    if target.is_absolute() or outside:
        raise FailedPreconditionError(
            f"{name} is a link that leads to {target}, which is not part of the checkpoint: copy the file, "
            "or link by a relative path within the directory"
        )


def _family(process: int) -> Iterator[int]:
    """The process and those that it started, and they in turn, as far as they live."""
    yield process
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            with contextlib.suppress(OSError):
                for child in (task / "children").read_text().split():
                    yield from _family(int(child))


def _writable(process: Path) -> Iterator[str]:
    """The files that a process can write to without opening them anew; one that is gone has none."""
    with contextlib.suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(OSError):  # it was closed meanwhile
                if _is_writable(process / "fdinfo" / descriptor.name):
                    yield str(descriptor.readlink())
        for line in (process / "maps").read_text(errors="surrogateescape").splitlines():
            fields = line.split(maxsplit=_MAPPED_FILE - 1)
            if len(fields) == _MAPPED_FILE and "w" in fields[1] and "s" in fields[1]:
                yield fields[5]


def _is_removed(target: str) -> bool:
    """Whether an open file has no name any more, and so is not in the checkpoint."""
    return target.endswith(" (deleted)") and not os.path.lexists(target)


def _is_writable(descriptor_info: Path) -> bool:
    fields = dict(line.split(":", 1) for line in descriptor_info.read_text().splitlines() if ":" in line)
    return int(fields["flags"], 8) & os.O_ACCMODE != os.O_RDONLY
