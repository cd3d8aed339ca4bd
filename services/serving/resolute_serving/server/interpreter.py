"""Configures how a service's interpreter divides its time: waiting calls come before background work."""

from __future__ import annotations

import gc
import sys

_SWITCH_SECONDS = 0.001
"""How long a thread that computes keeps the interpreter from the one that answers calls, each time that this
has waited for the system. A call waits some ten times."""
_THRESHOLDS = (5_000, 10, 25)
"""Of new objects, and of collections: a full one looks at all objects of thousands of streams, for a third of
a second. With Python's own thresholds it came every ten seconds while streams came and went."""


def put_calls_first() -> None:
    """Sets up the interpreter of a process that serves calls; to be called once its modules are imported."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    gc.enable()
