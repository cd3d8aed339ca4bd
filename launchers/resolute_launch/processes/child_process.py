"""Starts child processes in new sessions. They end when this process ends."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence

FORWARDED_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
    signal.SIGQUIT,
)
"""Signals that a led process gets from its leader."""
_PR_SET_PDEATHSIG = 1


def start_child(
    argv: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    parent_death_signal: signal.Signals,
    output: tuple[int | None, int | None] = (None, None),
) -> subprocess.Popen[bytes]:
    """Starts a process in a session of its own, so that signals reach it by the hand of this process only.

    This process must have no other thread yet: between fork and exec, code runs that another thread's lock
    could stop forever.

    Args:
        argv: Program and arguments.
        environ: Its environment; None for this process's own.
        parent_death_signal: What it gets if this process is killed and can pass nothing on any more (Linux).
        output: Descriptors of its stdout and its stderr; None for this process's own.

    Raises:
        OSError: It cannot be started.
    """
    stdout, stderr = output
    return subprocess.Popen(
        argv,
        env=environ,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        preexec_fn=_parent_death_hook(parent_death_signal),  # noqa: PLW1509  # the caller has one thread
    )


class SignalForwarder:
    """Forwards this process's signals to a child, from before the child's start until this process ends."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        for number in FORWARDED_SIGNALS:
            signal.signal(number, self._take)

    def attach(self, process: subprocess.Popen[bytes]) -> None:
        """Names the process; it gets what came before."""
        self._process = process
        for number in self._early:
            process.send_signal(number)

    def _take(self, number: int, _frame: object) -> None:
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)


def _parent_death_hook(number: signal.Signals) -> Callable[[], None] | None:
    try:
        # Found before the fork: afterwards, nothing that takes a lock is safe.
        prctl = ctypes.CDLL(None).prctl
    except (AttributeError, OSError):
        return None
    leader = os.getpid()

    def request_death_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, int(number))
        # It may have died before it could be watched.
        if os.getppid() != leader:
            os.kill(os.getpid(), number)

    return request_death_signal
