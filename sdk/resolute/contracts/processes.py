"""Identities of processes of this machine, so that a reused process id never gets another process killed.

A process id alone identifies a process only until it ends. Together with the kernel's start time of the
process it identifies it until the machine reboots, and together with the boot id for ever.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROC = Path("/proc")
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """The identity of one process, which stays valid after the process has ended."""

    pid: int
    """Process id."""
    start_time: int
    """Clock ticks between the boot of the machine and the start of the process."""
    boot_id: str
    """The boot in which it started."""

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """Returns the identity of the process that has this id now, or None if none has."""
        entry = _read_entry(pid)
        return None if entry is None else cls(pid=pid, start_time=entry.start_time, boot_id=boot_id())

    @classmethod
    def from_json(cls, content: Mapping[str, Any] | None) -> ProcessIdentity | None:
        """Reads what ``to_json`` wrote; None for no content and for content that names no process."""
        if not content:
            return None
        try:
            return cls(int(content["pid"]), int(content["start_time"]), str(content["boot_id"]))
        except (KeyError, TypeError, ValueError):
            return None

    def to_json(self) -> dict[str, Any]:
        """Returns the identity as plain data."""
        return {"pid": self.pid, "start_time": self.start_time, "boot_id": self.boot_id}

    def is_alive(self) -> bool:
        """Whether this very process runs; one that ended and was not waited for yet does not."""
        entry = _read_entry(self.pid)
        return entry is not None and not entry.dead and self == ProcessIdentity.of(self.pid)

    def send(self, number: int) -> bool:
        """Sends a signal to this process and to no other.

        Returns:
            Whether it was there to get it.
        """
        try:
            descriptor = open_pidfd(self.pid)
        except ProcessLookupError:
            return False
        if descriptor is None:
            return self._send_by_pid(number)
        try:
            # The descriptor holds on to anyone who had the id when it was opened: checked now, it stays true.
            if ProcessIdentity.of(self.pid) != self:
                return False
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True

    def _send_by_pid(self, number: int) -> bool:
        if ProcessIdentity.of(self.pid) != self:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


def boot_id() -> str:
    """Returns the id of this boot of the machine; empty where the kernel does not tell."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def open_pidfd(pid: int) -> int | None:
    """Returns a descriptor that becomes readable when the process ends, or None where the kernel has none.

    Raises:
        ProcessLookupError: There is no such process.
    """
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except (AttributeError, OSError):
        return None


@dataclass(frozen=True, slots=True)
class ProcessTree:
    """The descendants of a process, by session, group or parent, or by a variable of their environment.

    The variable identifies processes that left the session and whose parent has ended. Session and group
    count only while their leader is this process or a member has the variable: their numbers are process ids,
    which may be reused.
    """

    leader: ProcessIdentity | None
    """Whose session and group it is; None when it is not known."""
    variable: bytes
    """``NAME=value`` as the environment of every member holds it."""

    def members(self) -> list[ProcessIdentity]:
        """Returns the living members, never the calling process or one of its ancestors."""
        entries = {entry.pid: entry for entry in _entries() if not entry.dead}
        spared = set(_ancestors(os.getpid(), entries))
        pids = {pid for pid in entries if pid not in spared and self._has_variable(pid)}
        pids |= self._by_session(entries, pids)
        _add_descendants(pids, entries)
        boot = boot_id()
        return [ProcessIdentity(pid, entries[pid].start_time, boot) for pid in sorted(pids - spared)]

    def end(self, *, timeout: float) -> list[ProcessIdentity]:
        """Kills all members, those too that they start meanwhile.

        Args:
            timeout: Seconds to continue for.

        Returns:
            Who is left: empty unless the kernel does not let go of them.
        """
        deadline = time.monotonic() + timeout
        killed = set[ProcessIdentity]()
        # One that was killed has left the tree once its parents are gone, perhaps before it has ended itself.
        while left := {*self.members(), *(each for each in killed if each.is_alive())}:
            for member in left:
                with contextlib.suppress(PermissionError):
                    member.send(signal.SIGKILL)
            if time.monotonic() > deadline:
                return sorted(left, key=lambda each: each.pid)
            killed |= left
            time.sleep(_POLL_SECONDS)
        return []

    def _has_variable(self, pid: int) -> bool:
        try:
            environment = (_PROC / str(pid) / "environ").read_bytes()
        except OSError:
            return False
        return self.variable in environment.split(b"\0")

    def _by_session(self, entries: Mapping[int, _Entry], marked: Iterable[int]) -> set[int]:
        leader = self.leader
        if leader is None or leader.boot_id != boot_id():
            return set()
        same = {pid for pid, entry in entries.items() if leader.pid in (entry.session, entry.group)}
        current = ProcessIdentity.of(leader.pid)
        return same if current == leader or (current is None and same.intersection(marked)) else set()


@dataclass(frozen=True, slots=True)
class _Entry:
    """The kernel's data about one process."""

    pid: int
    parent: int
    group: int
    session: int
    start_time: int
    dead: bool


def _read_entry(pid: int) -> _Entry | None:
    try:
        text = (_PROC / str(pid) / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The program's name stands in parentheses and may hold anything, so fields are counted from the last one.
    fields = text[text.rindex(b")") + 2 :].split()
    return _Entry(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start_time=int(fields[19]),
        dead=fields[0] in (b"Z", b"X", b"x"),
    )


def _entries() -> Iterator[_Entry]:
    for name in os.listdir(_PROC):  # noqa: PTH208  # names alone are wanted
        if name.isdigit() and (entry := _read_entry(int(name))) is not None:
            yield entry


def _ancestors(pid: int, entries: Mapping[int, _Entry]) -> Iterator[int]:
    while pid:
        yield pid
        pid = entries[pid].parent if pid in entries else 0


def _add_descendants(pids: set[int], entries: Mapping[int, _Entry]) -> None:
    children: dict[int, list[int]] = {}
    for entry in entries.values():
        children.setdefault(entry.parent, []).append(entry.pid)
    waiting = list(pids)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in pids:
                pids.add(child)
                waiting.append(child)
