"""Runs a worker that a ``pid_server`` watches: ``python -m resolute_launch.ranks.pid_client ADDR CMD...``.

The connection lasts as long as the worker, however it ends. A worker that succeeded reports that first.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from resolute_launch.processes.child_process import SignalForwarder, start_child
from resolute_launch.ranks.pid_address import PidAddress

GOODBYE = b"q"
"""The last message of a worker that succeeded."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code of the worker, or 1 if no server answers."""
    parser = argparse.ArgumentParser(prog="determined.exec.pid_client", description=__doc__)
    parser.add_argument("address", metavar="ADDR", type=PidAddress, help="where the pid_server listens")
    parser.add_argument("command", metavar="CMD...", nargs=argparse.REMAINDER, help="what to run")
    options = parser.parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("empty command is not allowed")
    try:
        connection = options.address.connect()
    except OSError as failure:
        sys.stderr.write(f"no pid_server listens at {options.address.text}: {failure.strerror}\n")
        return 1
    with connection:
        connection.sendall(b"%d\n" % os.getpid())
        forwarder = SignalForwarder()
        try:
            process = start_child(command, parent_death_signal=signal.SIGKILL)
        except OSError as failure:
            sys.stderr.write(f"cannot run {command[0]!r}: {failure.strerror}\n")
            return 127
        forwarder.attach(process)
        code = process.wait()
        if not code:
            connection.sendall(GOODBYE)
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main())
