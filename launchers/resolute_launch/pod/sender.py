"""Sends the remaining data of a supervisor in a Pod: the first process of the sidecar container."""

from __future__ import annotations

import fcntl
import signal
import time
from pathlib import Path

from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.remaining_output import note_loss
from resolute_launch.pod.shim import KEPT, RUN

_POLL_SECONDS = 0.25


def send(folder: Path) -> int:
    """Waits until the trial's container has ended, however, and sends what it left.

    A Pod that is taken away is signalled in each of its containers. This one goes on: what it waits for comes
    to its end now.

    Args:
        folder: The Pod's volume.

    Returns:
        0 if everything has arrived.
    """
    signals = set[int]()
    signal.signal(signal.SIGTERM, lambda number, _: signals.add(number))
    while not (folder / KEPT).exists():
        if signals:
            return 0
        time.sleep(_POLL_SECONDS)
    with (folder / KEPT).open("rb") as kept:
        # The kernel gives up the shim's lock with the shim.
        fcntl.flock(kept, fcntl.LOCK_SH)
    run = RunDirectory(folder / RUN)
    lost = run.supervisor_file.exists() and not run.exit_file.exists()
    if lost:
        note_loss(run.path, now=time.time())
    # Not before: a Pod waits here for as long as it trains, and that is large.
    from resolute_launch.supervisor.orphan_upload import main as upload

    return upload([str(run.path), *(["--note-late-lines"] if lost else [])])
