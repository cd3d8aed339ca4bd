"""The identity of a home directory, by which a copy is recognised."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from resolute.contracts.files.atomic_files import read_json, write_json
from resolute.errors import FailedPreconditionError
from resolute_embedded.home.state_directory import StateDirectory

_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


@dataclass(frozen=True)
class HomeIdentity:
    """The identity of one directory on one machine."""

    path: str
    """Its path, without symbolic links."""
    inode: int
    """Its number in the file system."""
    machine: str
    """The machine's own id; empty where it has none, as in many containers."""

    @classmethod
    def of(cls, home: Path) -> HomeIdentity:
        """Returns the identity of a directory that is there."""
        real = home.resolve()
        return cls(path=str(real), inode=real.stat().st_ino, machine=machine_id())

    def is_same(self, other: HomeIdentity) -> bool:
        """Whether both are one directory. A machine without an id may be any."""
        if self.machine and other.machine and self.machine != other.machine:
            return False
        return (self.path, self.inode) == (other.path, other.inode)


def machine_id() -> str:
    """Returns the id of this machine, which lasts from its installation; empty where it has none."""
    for path in _MACHINE_IDS:
        try:
            return path.read_text().strip()
        except OSError:
            continue
    return ""


def record_identity(state: StateDirectory) -> None:
    """Notes in a home which directory it is."""
    write_json(state.home.identity_file, asdict(HomeIdentity.of(state.home.path)), sync=True)


def recorded_identity(state: StateDirectory) -> HomeIdentity | None:
    """Reads which directory a home was; None for one that was not served since homes note it."""
    content = read_json(state.home.identity_file)
    return None if content is None else HomeIdentity(**content)


def require_original(state: StateDirectory) -> None:
    """Makes sure that a home is the directory that it was; the first start notes which one.

    Raises:
        FailedPreconditionError: It is a copy, was moved, or a restore into it did not finish.
    """
    path = state.home.path
    if state.unfinished_file.exists():
        raise FailedPreconditionError(
            f"`resolute restore` into {path} did not finish; remove the directory and restore again"
        )
    known = recorded_identity(state)
    if known is None:
        record_identity(state)
    elif not known.is_same(HomeIdentity.of(path)):
        raise FailedPreconditionError(
            f"{path} is a copy of the home {known.path}, or was moved from there, and trials of the original "
            "may still run; `resolute adopt-copy` makes it a separate cluster (with --take-over if the "
            "original is gone for good)"
        )
