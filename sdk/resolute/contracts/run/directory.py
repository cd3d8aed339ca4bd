"""The directory that a trial's processes share with their supervisor: what lies where, and shared flags.

::

    launch.json     what the supervisor needs to begin (0600)
    lock            held by the supervisor for as long as it lives
    supervisor.json child.json    process identities, to find and end orphans
    token           the current token of the trial (0600), replaced with every lease renewal
    info/           what ``get_cluster_info`` reads
    flags           the signal and its acknowledgement, mapped into memory by both sides
    early_exit.json why the trial's own code ended early, written by the trial
    spool/          reports and lines on their way to the services
    work/           the model definition; the entrypoint's working directory
    remains/        links to what its processes leave elsewhere, which goes when all of them have ended
    exit.json       how the entrypoint ended, written by the supervisor
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resolute.contracts.run import external_resources
from resolute.errors import DataLossError

ENVIRONMENT_VARIABLE = "RESOLUTE_RUN_DIR"
"""Names the run directory in the environment of the entrypoint."""
FLAGS_SIZE = 4096
"""Bytes of the flags file; fixed, so that newer fields fit without a new file."""

_U64 = struct.Struct("<Q")
_F64 = struct.Struct("<d")


class MalformedFileError(DataLossError, ValueError):
    """A file of a run directory does not hold what it must."""


class RunDirectory:
    """Paths and small files of one run directory.

    Args:
        path: The directory. It must exist before anything is written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.launch_file = self.path / "launch.json"
        self.lock_file = self.path / "lock"
        self.supervisor_file = self.path / "supervisor.json"
        self.child_file = self.path / "child.json"
        self.token_file = self.path / "token"
        self.info = self.path / "info"
        self.flags_file = self.path / "flags"
        self.early_exit_file = self.path / "early_exit.json"
        self.spool = self.path / "spool"
        self.work = self.path / "work"
        self.remains = self.path / "remains"
        self.exit_file = self.path / "exit.json"

    def __repr__(self) -> str:
        return f"RunDirectory({str(self.path)!r})"

    @classmethod
    def from_environment(cls) -> RunDirectory | None:
        """Returns the run directory that this process was started in, or None outside of any."""
        path = os.environ.get(ENVIRONMENT_VARIABLE)
        return cls(path) if path else None

    def prepare(self) -> None:
        """Creates what both sides expect to be there: the directories and the flags file. Idempotent."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        for directory in (self.info, self.spool, self.work):
            directory.mkdir(exist_ok=True, mode=0o700)
        Flags.create(self.flags_file)

    def write_early_exit(self, reason: str) -> bool:
        """Leaves the reason of an early exit for the supervisor, unless one is there already.

        Args:
            reason: Name of an ``EarlyExitReason`` of the contract, without its prefix, such as
                ``INVALID_HP``.

        Returns:
            Whether it was the first.
        """
        if self.early_exit_file.exists():
            return False
        write_json(self.early_exit_file, {"reason": reason}, sync=True)
        return True

    def read_early_exit(self) -> str:
        """Returns the reason that was left, or an empty text if there is none."""
        content = read_json(self.early_exit_file)
        return str(content["reason"]) if content else ""

    def record_external_resource(self, path: Path) -> None:
        """Notes a file or directory elsewhere that is to go when the run's processes have ended. Idempotent.

        Args:
            path: Its absolute path; it may be yet to come.
        """
        external_resources.note(self.remains, path)

    def remove_external_resources(self) -> None:
        """Removes what was noted, as far as it is a run's own to leave there. Idempotent."""
        external_resources.clear(self.remains)

    def read_token(self) -> str:
        """Returns the token of the moment, or an empty text if there is none."""
        return read_token(self.token_file)


def read_token(path: Path) -> str:
    """Returns the token in a file, or an empty text if the file is not there."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return ""


def write_atomically(path: Path, content: str | bytes, *, mode: int = 0o600, sync: bool = False) -> None:
    """Replaces a file so that readers see the old content or the new, never a part.

    Args:
        path: The file.
        content: Its whole new content; text is written as UTF-8.
        mode: Permissions of the file, set before anything is in it.
        sync: Whether the content and its name are on disk before this returns.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if sync:
        _sync_directory(path.parent)


def write_json(path: Path, content: Mapping[str, Any], *, mode: int = 0o600, sync: bool = False) -> None:
    """Replaces a JSON file like ``write_atomically``."""
    write_atomically(path, json.dumps(content, indent=2) + "\n", mode=mode, sync=sync)


def read_json(path: Path) -> dict[str, Any] | None:
    """Returns the content of a JSON file, or None if the file is not there.

    Raises:
        MalformedFileError: The file holds something else than a JSON object.
    """
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as failure:
        raise MalformedFileError(f"{path} holds no JSON: {failure}") from failure
    if not isinstance(content, dict):
        raise MalformedFileError(f"{path} holds a JSON {type(content).__name__}, an object was expected")
    return content


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Flags:
    """The signal and its acknowledgement in memory that supervisor and trial share.

    Reading costs no system call, so that a training loop may ask at every step. Numbers are little endian::

        0   u64  revision of the signal; written last, so that whoever sees it sees the rest of the signal
        8   u8   1 when the allocation must checkpoint and exit
        9   u8   1 when it must end at once
        10  u8   why: ``SignalReason``
        16  f64  Unix time at which the processes will be ended; 0 without a deadline
        64  u8   1 when the trial has acknowledged: it exits because of the signal, or has no operation left
        72  u64  revision that it acknowledged; 0 when there was no signal

    The supervisor writes the first part, the trial the second. A map survives a fork and is harmless there.
    """

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._map = mmap.mmap(descriptor, FLAGS_SIZE)
        finally:
            os.close(descriptor)

    @classmethod
    def create(cls, path: Path) -> Flags:
        """Opens the flags, creating the file with no signal if it is not there."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(descriptor).st_size < FLAGS_SIZE:
                os.ftruncate(descriptor, FLAGS_SIZE)
        finally:
            os.close(descriptor)
        return cls(path)

    def set_signal(
        self, *, revision: int, preempt: bool, kill: bool = False, reason: int = 0, deadline: float = 0.0
    ) -> None:
        """Shows a signal to the trial; an older revision than the one shown changes nothing.

        Args:
            revision: Grows with every change of the allocation's signal.
            preempt: Whether the trial must checkpoint and exit.
            kill: Whether it must end at once.
            reason: ``SignalReason``.
            deadline: Unix time at which its processes will be ended; 0 for none.
        """
        if revision < self.revision:
            return
        self._map[16:24] = _F64.pack(deadline)
        self._map[10] = reason
        self._map[9] = kill
        self._map[8] = preempt
        self._map[0:8] = _U64.pack(revision)

    @property
    def revision(self) -> int:
        """Revision of the signal that is shown; 0 before the first."""
        return int(_U64.unpack(self._map[0:8])[0])

    @property
    def preempt(self) -> bool:
        """Whether the trial must checkpoint and exit."""
        return self._map[8] != 0

    @property
    def kill(self) -> bool:
        """Whether the trial must end at once."""
        return self._map[9] != 0

    @property
    def reason(self) -> int:
        """Why: ``SignalReason``."""
        return self._map[10]

    @property
    def deadline(self) -> float:
        """Unix time at which the processes will be ended; 0 for none."""
        return float(_F64.unpack(self._map[16:24])[0])

    def acknowledge(self) -> None:
        """Says that the trial exits because of the signal, or that it has no operation left. Idempotent."""
        self._map[72:80] = _U64.pack(self.revision)
        self._map[64] = 1

    @property
    def acknowledged(self) -> bool:
        """Whether the trial has acknowledged."""
        return self._map[64] != 0

    @property
    def acknowledged_revision(self) -> int:
        """Revision that the trial acknowledged; 0 when it has not, or when there was no signal."""
        return int(_U64.unpack(self._map[72:80])[0])

    def close(self) -> None:
        """Gives the map back."""
        self._map.close()
