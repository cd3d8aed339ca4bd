"""The files by which a run on shared storage is ended. Its shims poll for them.

::

    stop         its supervisors are to checkpoint and exit
    kill         its supervisors are to end at once
    RANK/left    nothing of a container runs any more

The first two are in the folder of the allocation, the last in each run directory.
"""

from __future__ import annotations

STOP = "stop"
"""What is asked for: the run is to checkpoint and exit."""
KILL = "kill"
"""What is asked for: the run is to end at once."""
LEFT = "left"
"""What a shim tells: nothing of the container runs any more."""
