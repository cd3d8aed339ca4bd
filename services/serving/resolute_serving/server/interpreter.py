"""Configures how a service's process divides its time and keeps memory: calls come before background work."""

from __future__ import annotations

import ctypes
import gc
import sys

_SWITCH_SECONDS = 0.001
"""How long a thread that computes keeps the interpreter from the one that answers calls, each time that this
has waited for the system. A call waits some ten times."""
_THRESHOLDS = (5_000, 10, 25)
"""Of new objects, and of collections: a full one looks at all objects of thousands of streams, for a third of
a second. With Python's own thresholds it came every ten seconds while streams came and went."""
_ALLOCATION = {-3: 256 * 1024, -1: 4 * 1024 * 1024, -8: 2}
"""Of glibc's ``mallopt``: from how many bytes an allocation is a mapping of its own, which is given back when
it is freed; how many unused bytes stay at the end of the heap; and how many heaps there are. By itself glibc
raises the first to the size of the largest message so far, up to 32 MiB, and keeps the memory."""


def put_calls_first() -> None:
    """Sets up the interpreter of a process that serves calls; to be called once its modules are imported."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    gc.enable()
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None:
        for parameter, value in _ALLOCATION.items():
            mallopt(parameter, value)
