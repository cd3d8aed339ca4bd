"""Protects a home from other users: it holds the operator's token, the signing key and all data."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from resolute.client.connection.home import HOME_VARIABLE
from resolute.errors import FailedPreconditionError
from resolute.transfer.disk import is_full_disk
from resolute_embedded.home.state_directory import StateDirectory

_OWN = f"let {HOME_VARIABLE} name a directory of your own"
_OTHERS = 0o077
"""Permission bits of group and world."""


def make_private(state: StateDirectory) -> None:
    """Makes a home, or one that exists, accessible to its owner alone, whatever the umask is.

    Databases are made private where they are opened.

    Args:
        state: The home.

    Raises:
        FailedPreconditionError: The home belongs to somebody else, is a directory that others use too, or its
            file system knows no permissions: nothing was changed. Or it cannot be written.
    """
    home = state.home.path
    if home.exists():
        _require_own(home)
    try:
        home.mkdir(parents=True, exist_ok=True)
        for directory in (
            (home, state.data) if state.databases.are_moved else (home, state.databases.files, state.data)
        ):
            directory.mkdir(exist_ok=True)
            directory.chmod(0o700)
    except OSError as error:
        if is_full_disk(error):
            raise
        raise FailedPreconditionError(
            f"cannot make {error.filename or home}: {error.strerror}; {_OWN}"
        ) from error
    if home.stat().st_mode & _OTHERS:
        raise FailedPreconditionError(
            f"{home} stays accessible to others after chmod 700: its file system keeps no permissions; "
            "let RESOLUTE_HOME name a directory on another one"
        )
    for file in (state.log, state.output):
        if file.exists():
            file.chmod(0o600)


def open_private(path: str, flags: int) -> int:
    """Opens a file, which others cannot access once it is open; an ``opener`` for ``open``."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


def _require_own(home: Path) -> None:
    status = home.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise FailedPreconditionError(f"{home} is not a directory; {_OWN}")
    if status.st_uid != os.geteuid():
        raise FailedPreconditionError(
            f"{home} belongs to user {status.st_uid}, this is user {os.geteuid()}; {_OWN}"
        )
    # A cluster's own directory can be made private; one with other things in it may be used by others.
    foreign = not _holds_cluster(home) and (status.st_mode & stat.S_ISVTX or any(home.iterdir()))
    if status.st_mode & _OTHERS and foreign:
        raise FailedPreconditionError(
            f"{home} is shared with others (mode {stat.S_IMODE(status.st_mode):o}) and holds no cluster; "
            f"{_OWN}, or if no other user needs it, run `chmod 700 {home}`"
        )


def _holds_cluster(home: Path) -> bool:
    return any((home / name).exists() for name in ("cluster.json", "databases", "lock", "credentials"))
