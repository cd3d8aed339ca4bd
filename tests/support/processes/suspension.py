"""Stops processes of this machine with all their threads."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from support.waiting import wait_until


def suspend(pid: int) -> None:
    """Stops a process, and returns once none of its threads runs any more; SIGCONT has it go on.

    The signal alone does not: on a busy machine a server answers calls for some tenths of a second after it.
    """
    os.kill(pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{pid}/task")
    wait_until(lambda: not any(_runs(thread) for thread in tasks.iterdir()), what=f"process {pid} to stop")


def _runs(thread: Path) -> bool:
    try:
        status = (thread / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False  # It has ended meanwhile.
    # The state is a letter after the name, which is in parentheses and may have any character.
    return not status.rpartition(") ")[2].startswith("T")
