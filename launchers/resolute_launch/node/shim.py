"""Starts the supervisor of one container on this node, and stays until none of its processes run.

The folder of the allocation is on storage that the nodes share. It has the run directory of each container,
named by its rank, and the files by which the allocation is ended (`resolute.contracts.run.shim_files`).

A batch system that takes a node away may send a signal to many processes at once. Shims poll files instead,
so that only the platform asks a script to exit, and the script ends after a checkpoint.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from resolute.contracts.files.atomic_files import read_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.run.remaining_output import note_loss, saved_output
from resolute.contracts.run.shim_files import KILL, LEFT, STOP
from resolute_launch.container.entrypoint_process import END_SECONDS, process_tree_of
from resolute_launch.processes.first_process import reap_orphans

_POLL_SECONDS = 0.25
"""How often shared storage is asked for the stop: it sends no events."""


def main(arguments: Sequence[str]) -> int:
    """Keeps one supervisor to its end.

    Args:
        arguments: The allocation's folder, and the container's rank.

    Returns:
        Exit code of the supervisor.
    """
    folder, rank = Path(arguments[0]), int(arguments[1])
    run = RunDirectory(folder / str(rank))
    # A handler, not SIG_IGN: the supervisor would inherit that.
    signal.signal(signal.SIGTERM, lambda *_: None)
    place_order(run, os.environ)
    # A list of names: network file systems remember for long that a single one was not there.
    code = keep_supervisor(run, lambda: os.listdir(folder))  # noqa: PTH208 - names alone are wanted
    (run.path / LEFT).touch()
    return code


def place_order(run: RunDirectory, environ: Mapping[str, str], *, overlays: Path | None = None) -> None:
    """Writes into a launch order what is known on the node only: its name, its address and its GPUs.

    Args:
        run: The run directory.
        environ: The environment of this process.
        overlays: Directory of what startup hooks have installed; None for that of the order.
    """
    order = LaunchOrder.read(run.launch_file)
    devices = environ.get("CUDA_VISIBLE_DEVICES", "")
    replace(
        order,
        agent_id=environ.get("SLURMD_NODENAME") or socket.gethostname(),
        bind_address=own_address(order.master),
        devices=tuple(filter(None, devices.split(","))) if order.slot_kind == "gpu" else (),
        python=sys.executable,
        overlays=order.overlays if overlays is None else str(overlays),
    ).write(run.launch_file)


def own_address(master: str) -> str:
    """The address of this machine on the network on which it reaches the control plane.

    Args:
        master: ``host:port`` of the control plane.
    """
    host, _, port = master.rpartition(":")
    family, kind, protocol, _, address = socket.getaddrinfo(
        host.strip("[]"), int(port), type=socket.SOCK_DGRAM
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        # Nothing is sent: the kernel chooses the way, and with it the address.
        probe.connect(address)
        own: str = probe.getsockname()[0]
        return own


def end_what_is_left(run: RunDirectory) -> None:
    """Ends what a lost supervisor left running, and notes the loss for the log of the trial."""
    tree = process_tree_of(run, _identity(run.child_file))
    with saved_output(run.path):
        left = tree.end(timeout=END_SECONDS)
    if not left:
        run.remove_external_resources()
    if run.supervisor_file.exists():
        note_loss(run.path, now=time.time())


def keep_supervisor(run: RunDirectory, asked: Callable[[], Collection[str]]) -> int:
    """Starts a supervisor, waits for its end, and ends what it left running.

    Args:
        run: The run directory, with a launch order.
        asked: Tells, a few times a second, whether ``STOP`` or ``KILL`` was asked for.

    Returns:
        Exit code of the supervisor.
    """
    with run.log_file.open("ab") as log:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "resolute_launch.supervisor", str(run.path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=run.path,
        )
    code = _wait(supervisor, asked)
    if not run.exit_file.exists():
        end_what_is_left(run)
    return code


def _wait(supervisor: subprocess.Popen[bytes], asked: Callable[[], Collection[str]]) -> int:
    stopped = False
    while True:
        try:
            return supervisor.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            reap_orphans(but=supervisor.pid)
            words = asked()
            if KILL in words:
                supervisor.kill()
            elif STOP in words and not stopped:
                supervisor.send_signal(signal.SIGTERM)
                stopped = True


def _identity(path: Path) -> ProcessIdentity | None:
    try:
        return ProcessIdentity.from_json(read_json(path))
    except ValueError:
        return None
