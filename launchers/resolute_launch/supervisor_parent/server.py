"""Serves forks of this process. It has one thread, no event loop, and no connection that a fork would share.

A request is one packet: the run directory as text, with the lock and the log of the run as descriptors. The
answer is one packet too: the process id, or the error that prevented the fork. This process ends with the
connection; the forked supervisors continue.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
from types import FrameType

from resolute_launch.warm.process_image import show_command

MAX_REQUEST_BYTES = 8192


def serve(connection: socket.socket) -> list[str] | None:
    """Serves a connection to its end.

    Returns:
        In a fork, the arguments of its supervisor; None in this process.
    """
    signal.signal(signal.SIGCHLD, _reap)
    # Pages that hold no counters of the collector stay shared with the forks.
    gc.collect()
    gc.freeze()
    while True:
        request, descriptors, _, _ = socket.recv_fds(connection, MAX_REQUEST_BYTES, 2)
        if not request:
            return None
        run = request.decode()
        try:
            pid = os.fork()
        except OSError as failure:
            answer: dict[str, int | str] = {"error": str(failure)}
        else:
            if not pid:
                connection.close()
                lock, log = descriptors
                return _become_supervisor(run, lock=lock, log=log)
            answer = {"pid": pid}
        for descriptor in descriptors:
            os.close(descriptor)
        connection.send(json.dumps(answer).encode())


def _become_supervisor(run: str, *, lock: int, log: int) -> list[str]:
    """Makes a fork what a new process would be."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.chdir(run)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    arguments = [run, "--lock-fd", str(lock)]
    with contextlib.suppress(OSError):  # only for those who look at lists of processes
        show_command([sys.executable, "-m", "resolute_launch.supervisor", *arguments])
    return arguments


def _reap(_number: int, _frame: FrameType | None) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
