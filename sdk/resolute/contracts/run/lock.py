"""The lock of a run directory, held from before the start of its supervisor until the supervisor ends."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from resolute.errors import ConflictError


class RunLock:
    """A lock that the kernel drops when the last process that holds it ends, however it ends.

    The engine takes the lock and passes its descriptor to the supervisor that it starts. So a started run
    never looks like one that was not started.

    Args:
        descriptor: Descriptor of the open lock file, whose lock is held. The object takes ownership of it.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        # The trial must not inherit it, or its processes would make a dead supervisor look alive.
        os.set_inheritable(descriptor, False)

    @classmethod
    def acquire(cls, path: Path, *, shared: bool = False) -> RunLock:
        """Takes the lock.

        Args:
            path: The lock file; created if missing.
            shared: Whether other processes may hold it too, if they take it shared as well.

        Raises:
            ConflictError: Another process holds it.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as failure:
            os.close(descriptor)
            if failure.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
                raise
            raise ConflictError(
                f"{path.parent} has a supervisor already; a run is started once, look at its supervisor.json"
            ) from failure
        return cls(descriptor)

    @classmethod
    def inherit(cls, descriptor: int, path: Path) -> RunLock:
        """Takes over a lock from the process that started this one.

        Raises:
            ConflictError: The descriptor is not an open descriptor of this lock file.
        """
        try:
            same = os.path.samestat(os.fstat(descriptor), path.stat())
        except OSError:
            same = False
        if not same:
            raise ConflictError(f"descriptor {descriptor} is not the lock of {path.parent}")
        # Held already through the shared descriptor, so this cannot fail unless it never was.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return cls(descriptor)

    def share(self) -> None:
        """Lets other processes take the lock too, shared."""
        fcntl.flock(self.descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def release(self) -> None:
        """Closes this process's descriptor; the lock is dropped unless another process has it too."""
        os.close(self.descriptor)


def is_locked(path: Path) -> bool:
    """Returns whether some process holds the lock; False if there is no lock file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as failure:
        if failure.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
            raise
        return True
    finally:
        os.close(descriptor)
    return False
