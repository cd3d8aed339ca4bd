"""Keeps a script from changing the files of a checkpoint that counts."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from resolute.errors import FailedPreconditionError

_DESCRIPTORS = Path("/proc/self/fd")
_DESCRIPTOR_INFO = Path("/proc/self/fdinfo")


def check_closed(directory: Path) -> None:
    """Checks that this process holds no file of a directory open for writing.

    Raises:
        FailedPreconditionError: It does, so the file is not complete, and would change after the commit.
    """
    root = f"{directory.resolve()}/"
    for descriptor in _DESCRIPTORS.iterdir():
        with contextlib.suppress(OSError):  # it was closed meanwhile
            target = str(descriptor.readlink())
            if target.startswith(root) and _is_writable(descriptor.name):
                raise FailedPreconditionError(
                    f"{target.removeprefix(root)} is still open for writing, so the checkpoint would be "
                    "committed without all of it: close it before the block of store_path() ends"
                )


def protect(directory: Path, paths: Iterable[str]) -> None:
    """Makes committed files read-only: who opens one to write to it is told so, and does no damage."""
    for path in paths:
        if not path.endswith("/"):
            with contextlib.suppress(PermissionError):  # another user's
                name = f"{directory}/{path}"
                os.chmod(name, os.stat(name).st_mode & ~0o222)  # noqa: PTH101, PTH116 - for 100 000 files


def _is_writable(descriptor: str) -> bool:
    fields = dict(
        line.split(":", 1) for line in (_DESCRIPTOR_INFO / descriptor).read_text().splitlines() if ":" in line
    )
    return int(fields["flags"], 8) & os.O_ACCMODE != os.O_RDONLY
