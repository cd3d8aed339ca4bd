"""Runs the supervisor of a Pod: the first process of the trial's container."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.run.lock import RunLock
from resolute.contracts.run.shim_files import STOP
from resolute.contracts.run.termination_message import BEGAN, write_message
from resolute_launch.node.shim import keep_supervisor

RUN = "run"
"""Folder of the Pod's volume: the run directory."""
KEPT = "kept"
"""File of the Pod's volume: its lock is held while the shim lives, from the moment at which it is there."""
NODE_VARIABLE, ADDRESS_VARIABLE = "RESOLUTE_NODE", "RESOLUTE_POD_ADDRESS"
"""What a Pod's environment tells of itself."""


def keep(folder: Path, *, order: Path, asked: Path, termination_message: Path) -> int:
    """Keeps one supervisor to its end.

    Args:
        folder: The Pod's volume.
        order: The launch order.
        asked: A file in which words appear of what is asked.
        termination_message: A file whose content outlives the container.

    Returns:
        Exit code of the supervisor.
    """
    commands = set[str]()
    # What Kubernetes sends to each first process before it takes the Pod away.
    signal.signal(signal.SIGTERM, lambda *_: commands.add(STOP))
    lock = _announce(folder)
    run = RunDirectory(folder / RUN)
    run.path.mkdir(mode=0o700)
    placed = replace(
        LaunchOrder.read(order),
        agent_id=os.environ[NODE_VARIABLE],
        bind_address=os.environ[ADDRESS_VARIABLE],
    )
    placed.write(run.launch_file)
    termination_message.write_text(BEGAN)

    def look() -> Collection[str]:
        try:
            return commands | set(asked.read_text().split())
        except FileNotFoundError:
            # The kubelet replaces it at this moment.
            return commands

    code = keep_supervisor(run, look)
    record = ExitRecord.read(run.exit_file)
    if record is not None:
        termination_message.write_text(write_message(record))
    lock.release()
    return code


def _announce(folder: Path) -> RunLock:
    # Who sees the file finds it locked: a moment between the two would look like an end.
    made = Path(tempfile.mkdtemp(dir=folder)) / KEPT
    lock = RunLock.acquire(made)
    made.rename(folder / KEPT)
    made.parent.rmdir()
    return lock
