"""The command line and environment that the kernel shows of a process. A fork inherits them from its parent.

The processes of a run are identified by a variable in the environment that the kernel shows. A parked process
is started with enough space for both, and a fork writes its own command line and environment there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

from resolute.contracts.run.directory import ENVIRONMENT_VARIABLE

PADDING = 4096
"""Bytes of room."""
_ARGUMENTS, _ENVIRONMENT = (48, 49), (50, 51)
"""Fields of ``/proc/PID/stat``, from 1: where both begin and end."""
_PR_SET_PDEATHSIG = 1


def placeholder() -> dict[str, str]:
    """Returns the variable that keeps room for the run directory of a fork."""
    return {ENVIRONMENT_VARIABLE: "-" * PADDING}


def show_run_directory(path: str) -> None:
    """Writes the run directory into the environment that the kernel shows of this process.

    Raises:
        OSError: There is no room for it.
    """
    begin, end = _area(_ENVIRONMENT)
    content = ctypes.string_at(begin, end - begin)
    name = f"{ENVIRONMENT_VARIABLE}=".encode()
    entries = content.split(b"\0")
    offset = 0
    for entry in entries:
        if entry.startswith(name):
            value = path.encode()
            if len(value) > len(entry) - len(name):
                raise OSError(f"{path} is too long for a warm start")
            ctypes.memmove(
                begin + offset + len(name), value.ljust(len(entry) - len(name), b"\0"), len(entry) - len(name)
            )
            return
        offset += len(entry) + 1
    raise OSError(f"the environment of this process has no room for {path}")


def show_command(words: Sequence[str]) -> None:
    """Writes a command line into the one that the kernel shows of this process, as far as there is room."""
    begin, end = _area(_ARGUMENTS)
    room = end - begin
    content = b"".join(word.encode() + b"\0" for word in words)[: room - 1]
    ctypes.memmove(begin, content.ljust(room, b"\0"), room)


def end_with_parent(number: int) -> None:
    """Has the kernel send this process a signal when its parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def _area(fields: tuple[int, int]) -> tuple[int, int]:
    text = Path("/proc/self/stat").read_text()
    # The program's name stands in parentheses and may hold anything: fields are counted from the last one.
    values = text[text.rindex(")") + 2 :].split()
    begin, end = (int(values[field - 3]) for field in fields)
    if not 0 < begin < end:
        raise OSError("the kernel does not say where the command line of this process is")
    return begin, end
