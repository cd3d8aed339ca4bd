"""The processes of one home that may be killed, found as an operator would find them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from resolute.contracts.processes import ProcessIdentity

_PROC = Path("/proc")


class Role(Enum):
    """What a process, or a machine with all of its processes, is to the cluster."""

    CONTROL_PLANE = "control plane"
    SUPERVISOR = "supervisor"
    ORPHAN_UPLOAD = "orphan upload"
    TRIAL = "trial"
    ENGINE_DAEMON = "engine daemon"
    NODE = "node"
    POSTGRES = "PostgreSQL"
    OBJECT_STORE = "object store"


@dataclass(frozen=True)
class ClusterProcess:
    """A living process of the home."""

    identity: ProcessIdentity
    role: Role


def processes_of(home: Path) -> list[ClusterProcess]:
    """Finds every process that serves a home or runs a trial of it."""
    return sorted(_found(home), key=lambda victim: victim.identity.pid)


def running(program: str, beginning: str) -> list[ProcessIdentity]:
    """Finds every process that runs a program on something.

    Args:
        program: One of its arguments.
        beginning: Begins another one, such as the directory that it works in.
    """
    found = []
    for entry in _PROC.iterdir():
        identity = ProcessIdentity.of(int(entry.name)) if entry.name.isdigit() else None
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        ours = any(argument.startswith(beginning.encode()) for argument in arguments)
        if identity is not None and ours and program.encode() in arguments:
            found.append(identity)
    return found


def _found(home: Path) -> Iterator[ClusterProcess]:
    runs = str(home / "runs").encode() + b"/"
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        # Whose id it is now is asked before what it is: a process that comes later is never taken for it.
        identity = ProcessIdentity.of(int(entry.name))
        role = _role(entry, home=home, runs=runs)
        if identity is not None and role is not None and identity.is_alive():
            yield ClusterProcess(identity, role)


def _role(entry: Path, *, home: Path, runs: bytes) -> Role | None:
    try:
        arguments = (entry / "cmdline").read_bytes().split(b"\0")
        environment = (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    if any(variable.startswith(b"RESOLUTE_RUN_DIR=" + runs) for variable in environment):
        return Role.TRIAL
    if any(argument.startswith(runs) for argument in arguments):
        return (
            Role.ORPHAN_UPLOAD
            if b"resolute_launch.supervisor.orphan_upload" in arguments
            else Role.SUPERVISOR
        )
    if b"resolute_embedded" in arguments and b"RESOLUTE_HOME=" + str(home).encode() in environment:
        return Role.CONTROL_PLANE
    return None
