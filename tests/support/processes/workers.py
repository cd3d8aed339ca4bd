"""The processes that worker pools of this process have started."""

from __future__ import annotations

import contextlib

import psutil


def worker_processes() -> set[int]:
    """Returns the process ids of the workers that run; other tests may have left children that ended."""
    found = set()
    for process in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "resolute_serving.workers.child" in process.cmdline():
                found.add(process.pid)
    return found
