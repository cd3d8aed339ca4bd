"""Ships what a supervisor left in the spools of its run: it was killed, or nobody answered it for too long.

Run as ``python -m resolute_launch.supervisor.orphan_upload RUN_DIR``. Only for runs that are over; exits with
0 once all of it has arrived, and with 1 when something still waits.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from resolute.api.experiments.v1.launch_spec_pb2 import LaunchSpec
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.run.lock import RunLock, is_locked
from resolute.errors import ConflictError, InvalidArgumentError
from resolute.rpc.channel import open_channel
from resolute.spool.delivery.shipping import SpoolShipper
from resolute_launch.container.task import ControlPlaneConnection, Task
from resolute_launch.container.task_info import run_identity
from resolute_launch.control_plane.client import ControlPlane
from resolute_launch.control_plane.outage_timeout import OutageTimeout
from resolute_launch.supervisor.main import EXIT_REFUSED, SPEC_FILE, start_log

_log = logging.getLogger("resolute.salvage")


def salvage(
    run: RunDirectory, *, clock: Clock = SYSTEM_CLOCK, outage_timeout_seconds: float | None = None
) -> bool:
    """Sends everything that waits in the spools of a run that is over.

    Args:
        run: The run directory.
        clock: Measures the outage.
        outage_timeout_seconds: How long to go on; None takes the timeout of the run.

    Returns:
        Whether everything has arrived.

    Raises:
        InvalidArgumentError: The run never learned what it was, so it left nothing that could be sent.
    """
    order = LaunchOrder.read(run.launch_file)
    try:
        spec = LaunchSpec.FromString((run.path / SPEC_FILE).read_bytes())
    except FileNotFoundError:
        raise InvalidArgumentError(f"{run.path} has no launch spec: nothing ran there") from None
    seconds = order.lease_patience_seconds if outage_timeout_seconds is None else outage_timeout_seconds
    channel = open_channel(order.master, token=run.read_token, trace_id=spec.trace_id)
    outage_timeout = OutageTimeout(seconds, clock=clock)
    task = Task(spec, order, run)
    connection = ControlPlaneConnection(channel, ControlPlane(channel, order), outage_timeout)
    shipping = SpoolShipper(connection.channel, run.spool, run_identity(task), clock=clock)
    shipping.start()
    try:
        return shipping.drain(give_up=lambda: outage_timeout.exhausted)
    finally:
        shipping.stop()
        channel.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Salvages one run.

    Returns:
        0 when everything has arrived, 1 when something still waits, ``EXIT_REFUSED`` when the run is not over
        or is being salvaged by someone else.
    """
    parser = argparse.ArgumentParser(prog="resolute_launch.supervisor.orphan_upload", description=__doc__)
    parser.add_argument("run_dir", help="directory of a run that is over")
    parser.add_argument("--patience", type=float, help="seconds to go on; by default as the run would have")
    options = parser.parse_args(arguments)
    run = RunDirectory(os.path.abspath(options.run_dir))  # noqa: PTH100  # resolves no links, unlike pathlib
    if is_locked(run.lock_file):
        sys.stderr.write(f"{run.path} still has a supervisor, which ships everything itself\n")
        return EXIT_REFUSED
    try:
        lock = RunLock.acquire(run.path / "salvage.lock")
    except ConflictError:
        sys.stderr.write(f"{run.path} is being salvaged already\n")
        return EXIT_REFUSED
    start_log("INFO")
    try:
        done = salvage(run, outage_timeout_seconds=options.patience)
    except InvalidArgumentError as nothing:
        _log.info("%s", nothing)
        return 0
    finally:
        lock.release()
    _log.info("everything has arrived" if done else "something still waits")
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
