"""Uploads the remaining spools of a run whose supervisor was lost.

It runs as ``python -m resolute_launch.supervisor.orphan_upload RUN_DIR``, only for runs that have ended:
their supervisor was killed, or an outage of the control plane lasted too long. The exit code is 0 if
everything has arrived, and 1 otherwise.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from resolute.api.experiments.v1.launch_spec_pb2 import LaunchSpec
from resolute.contracts.calls.tls import ClientTls
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.run.lock import RunLock, is_locked
from resolute.contracts.run.remaining_output import lost_file
from resolute.errors import ConflictError, InvalidArgumentError, QuotaError
from resolute.rpc.channel import open_channel
from resolute.spool.delivery.shipping import SpoolShipper
from resolute_launch.container.lost_output import spool_lost_output
from resolute_launch.container.task import Task
from resolute_launch.container.task_info import run_identity
from resolute_launch.control_plane.client import ControlPlane
from resolute_launch.control_plane.connection import ControlPlaneConnection
from resolute_launch.control_plane.outage_timeout import OutageTimeout
from resolute_launch.supervisor.late_lines import LateLines
from resolute_launch.supervisor.main import EXIT_REFUSED, SPEC_FILE, start_log

_log = logging.getLogger("resolute.orphan_upload")


def upload_orphans(
    run: RunDirectory,
    *,
    clock: Clock = SYSTEM_CLOCK,
    outage_timeout_seconds: float | None = None,
    note_late_lines: bool = False,
    master: str = "",
) -> bool:
    """Sends everything that is left in the spools of a run that has ended.

    Args:
        run: The run directory.
        clock: Measures the outage.
        outage_timeout_seconds: How long an outage may last; None takes the timeout of the run.
        note_late_lines: Whether the log says so when lines have not arrived after the run's wait for them.
        master: ``host:port`` of the services; empty for where they were when the run began.

    Returns:
        Whether everything has arrived.

    Raises:
        InvalidArgumentError: The run has no launch spec, so it left nothing that could be sent.
    """
    order = LaunchOrder.read(run.launch_file)
    try:
        spec = LaunchSpec.FromString((run.path / SPEC_FILE).read_bytes())
    except FileNotFoundError:
        raise InvalidArgumentError(f"{run.path} has no launch spec: nothing ran there") from None
    try:
        spool_lost_output(run, order, clock=clock)
    except (QuotaError, OSError) as failure:
        _log.error("what the lost supervisor had not read cannot be sent yet: %s", failure)
    seconds = order.lease_patience_seconds if outage_timeout_seconds is None else outage_timeout_seconds
    channel = open_channel(
        master or order.master,
        token=run.read_token,
        tls=ClientTls.from_json(order.tls),
        trace_id=spec.trace_id,
    )
    outage_timeout = OutageTimeout(seconds, clock=clock)
    task = Task(spec, order, run)
    connection = ControlPlaneConnection(channel, ControlPlane(channel, order), outage_timeout)
    shipping = SpoolShipper(connection.channel, run.spool, run_identity(task), clock=clock)
    shipping.start()
    late_lines = LateLines(shipping, run.spool, seconds=order.log_wait_seconds, clock=clock)
    try:
        if note_late_lines:
            late_lines.wait(give_up=lambda: outage_timeout.exhausted)
        sent = shipping.drain(give_up=lambda: outage_timeout.exhausted)
        return sent and not lost_file(run.path).exists()
    finally:
        shipping.stop()
        channel.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Uploads what one run left.

    Returns:
        0 if everything has arrived, 1 if something has not, ``EXIT_REFUSED`` if the run has not ended or is
        being uploaded by another process.
    """
    parser = argparse.ArgumentParser(prog="resolute_launch.supervisor.orphan_upload", description=__doc__)
    parser.add_argument("run_dir", help="directory of a run that has ended")
    parser.add_argument(
        "--outage-timeout", type=float, help="seconds that an outage may last; default: that of the run"
    )
    parser.add_argument("--master", default="", help="address of the services now; default: the run's")
    parser.add_argument(
        "--note-late-lines",
        action="store_true",
        help="let the log say so when lines do not arrive before the end of the run is reported",
    )
    options = parser.parse_args(arguments)
    run = RunDirectory(os.path.abspath(options.run_dir))  # noqa: PTH100  # resolves no links, unlike pathlib
    if is_locked(run.lock_file):
        sys.stderr.write(f"{run.path} still has a supervisor, which sends everything itself\n")
        return EXIT_REFUSED
    try:
        lock = RunLock.acquire(run.path / "salvage.lock")
    except ConflictError:
        sys.stderr.write(f"{run.path} is being uploaded already\n")
        return EXIT_REFUSED
    start_log("INFO", run)
    try:
        done = upload_orphans(
            run,
            outage_timeout_seconds=options.outage_timeout,
            note_late_lines=options.note_late_lines,
            master=options.master,
        )
    except InvalidArgumentError as nothing:
        _log.info("%s", nothing)
        return 0
    finally:
        lock.release()
    _log.info("everything has arrived" if done else "something has not arrived")
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
