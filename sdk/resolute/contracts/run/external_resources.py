"""What a run leaves outside of its directory, and what may be removed on its word.

Links in a folder of the run name it. The trial's processes can write there as well, by mistake or on purpose,
and whoever clears away may be allowed more than they are: only what the platform itself makes elsewhere goes,
by its place, its name and its owner.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

SCRATCH_PREFIX = "resolute-"
"""Begins the name of a directory for temporary files."""
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  # its place
"""Where ranks of one machine exchange tensors."""


def buffer_prefix() -> str:
    """Begins the name of the memory that ranks of DeepSpeed share, who run as this user."""
    return f"deepspeed_allreduce_buffer_{os.getuid()}_"


def note(folder: Path, path: Path) -> None:
    """Notes what is to go. Idempotent.

    Args:
        folder: Where the run notes it; made if it is not there.
        path: Its absolute path; it may be yet to come.
    """
    folder.mkdir(exist_ok=True, mode=0o700)
    # By the whole path: things in different places may have one name.
    name = hashlib.sha256(os.fsencode(path)).hexdigest()
    with contextlib.suppress(FileExistsError):
        (folder / name).symlink_to(path)


def clear(folder: Path) -> None:
    """Removes what was noted, as far as it is a run's own to leave there. Idempotent."""
    if folder.is_symlink():
        return
    for link in folder.glob("*"):
        if link.is_symlink() and _belongs_to_a_run(path := link.readlink()):
            remove(path)
        remove(link)


def remove(path: Path) -> None:
    """Removes a file or a directory with all that is in it, as far as its owner lets this process."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        path.unlink()


def _belongs_to_a_run(path: Path) -> bool:
    places = ((Path(tempfile.gettempdir()), SCRATCH_PREFIX), (SHARED_MEMORY, buffer_prefix()))
    # A way there by "..", or from another directory, has another parent.
    if not any(path.parent == place and path.name.startswith(prefix) for place, prefix in places):
        return False
    try:
        return path.lstat().st_uid == os.getuid()
    except OSError:
        return False
