"""Resources that a run creates outside of its directory, and which of them may be removed.

Each resource is recorded as a link in a folder of the run. The trial's processes can write to that folder,
and the process that removes the resources may have more permissions than they have. So it removes only
resources that the platform created, recognised by place, name and owner.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

SCRATCH_PREFIX = "resolute-"
"""Begins the names of directories for temporary files."""
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # its place
"""Where ranks of one machine exchange tensors."""


def buffer_prefix() -> str:
    """Begins the names of the shared memory of this user's DeepSpeed ranks."""
    return f"deepspeed_allreduce_buffer_{os.getuid()}_"


def record(folder: Path, path: Path) -> None:
    """Records a resource to be removed later. Idempotent.

    Args:
        folder: Where the run records its resources; created if it is missing.
        path: The absolute path of the resource; it need not exist yet.
    """
    folder.mkdir(exist_ok=True, mode=0o700)
    # Of the whole path: resources in different places may have the same name.
    name = hashlib.sha256(os.fsencode(path)).hexdigest()
    with contextlib.suppress(FileExistsError):
        (folder / name).symlink_to(path)


def remove_all(folder: Path) -> None:
    """Removes what was recorded, as far as a run may have created it there. Idempotent."""
    if folder.is_symlink():
        return
    for link in folder.glob("*"):
        if link.is_symlink() and _belongs_to_a_run(path := link.readlink()):
            remove(path)
        remove(link)


def remove(path: Path) -> None:
    """Removes a file, or a directory with its content, as far as this process is permitted to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        path.unlink()


def _belongs_to_a_run(path: Path) -> bool:
    places = ((Path(tempfile.gettempdir()), SCRATCH_PREFIX), (SHARED_MEMORY, buffer_prefix()))
    # A path with "..", or through another directory, has another parent.
    if not any(path.parent == place and path.name.startswith(prefix) for place, prefix in places):
        return False
    try:
        return path.lstat().st_uid == os.getuid()
    except OSError:
        return False
