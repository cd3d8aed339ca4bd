"""The processes of a run from the kernel's data: ranks, states, and processor time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from resolute.contracts.processes import ProcessIdentity, ProcessTree

_PROC = Path("/proc")
_RANKS = (b"RANK=", b"HOROVOD_RANK=", b"OMPI_COMM_WORLD_RANK=")
_LAUNCHER = re.compile(
    rb"resolute_launch\.(?!harness\b|exec\.harness\b)|determined\.launch\."
    rb"|determined\.exec\.(?!harness\b)|torch\.distributed\.(?:run|launch)\b|horovod\.runner|accelerate\.commands"
)
"""Modules of processes that only start and watch others."""
_LAUNCHER_NAMES = (b"torchrun", b"horovodrun", b"deepspeed", b"mpirun", b"accelerate")
_FIRST_WORDS = 6
"""Of a command line: what is behind belongs to what it starts."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One process of a run, launchers excepted."""

    identity: ProcessIdentity
    parent: int
    rank: int | None
    """By its environment, which children inherit; None where that names none."""
    state: str
    """A letter: ``R`` runs, ``S`` sleeps, ``D`` waits within the kernel, ``T`` is stopped, ``Z`` is dead."""
    command: str
    caught: int
    """Mask of the signals that it handles."""

    def handles(self, number: int) -> bool:
        """Whether it handles a signal, which ends a process that does not."""
        return bool(self.caught >> (number - 1) & 1)

    def has_open(self, path: Path) -> bool:
        """Whether it has a file open."""
        folder = _PROC / str(self.identity.pid) / "fd"
        try:
            # Names alone: each is a link.
            return any(_link(folder / name) == str(path) for name in os.listdir(folder))  # noqa: PTH208
        except OSError:
            return False

    @property
    def waits_in(self) -> str:
        """Function of the kernel that it waits in; empty where the kernel does not tell."""
        try:
            name = (_PROC / str(self.identity.pid) / "wchan").read_text().strip()
        except OSError:
            return ""
        return "" if name == "0" else name


def members_of(tree: ProcessTree) -> list[Member]:
    """Reads the living processes of a run, without its launchers."""
    found = (_read(identity) for identity in tree.members())
    return [member for member in found if member is not None]


def processor_seconds(identities: Sequence[ProcessIdentity]) -> Mapping[ProcessIdentity, float]:
    """Processor time that processes have used, with all their threads; those that ended are left out."""
    return dict(_times(identities))


def _times(identities: Sequence[ProcessIdentity]) -> Iterator[tuple[ProcessIdentity, float]]:
    for identity in identities:
        try:
            text = (_PROC / str(identity.pid) / "stat").read_bytes()
        except OSError:
            continue
        fields = text[text.rindex(b")") + 2 :].split()
        yield identity, (int(fields[11]) + int(fields[12])) / _TICKS


def _read(identity: ProcessIdentity) -> Member | None:
    folder = _PROC / str(identity.pid)
    try:
        command = (folder / "cmdline").read_bytes().rstrip(b"\0")
        environment = (folder / "environ").read_bytes()
        status = (folder / "status").read_text(errors="replace")
    except OSError:
        return None
    if _is_launcher(command):
        return None
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return Member(
        identity=identity,
        parent=int(fields["PPid"]),
        rank=_rank(environment),
        state=fields["State"].strip()[:1],
        command=command.replace(b"\0", b" ").decode(errors="replace")[:200],
        caught=int(fields["SigCgt"], 16),
    )


def _is_launcher(command: bytes) -> bool:
    words = command.split(b"\0")[:_FIRST_WORDS]
    modules = [after for word, after in pairwise(words) if word == b"-m"]
    if modules and _LAUNCHER.match(modules[0]):
        return True
    return any(os.path.basename(word) in _LAUNCHER_NAMES for word in words[:2])  # noqa: PTH119


def _rank(environment: bytes) -> int | None:
    variables = environment.split(b"\0")
    for name in _RANKS:
        for variable in variables:
            if variable.startswith(name) and variable[len(name) :].isdigit():
                return int(variable[len(name) :])
    return None


def _link(path: Path) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115  # as text
    except OSError:
        return ""
