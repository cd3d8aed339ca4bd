"""The first process of a container, which must also reap orphaned processes.

A process whose parent has ended becomes a child of the first process, and only the first process can wait for
it. Until then it counts against the container's limit of processes.
"""

from __future__ import annotations

import os
import signal

from resolute_launch.processes.child_process import FORWARDED_SIGNALS

_FIRST = 1
_AWAITED = (*FORWARDED_SIGNALS, signal.SIGCHLD)


def leave_first_process() -> None:
    """Goes on in a child where this is the first process of a container; elsewhere it does nothing.

    The first process then passes signals on, waits for whatever ends, and ends as the child does. To be
    called before other threads are started and before much is imported: the memory is that of two processes.
    """
    if os.getpid() != _FIRST:
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    os._exit(_serve(child))


def reap_orphans(*, but: int) -> None:
    """Reaps the orphans that have ended, where this is the first process of a container.

    Args:
        but: Number of the child of its own that this process has, and waits for elsewhere.
    """
    if os.getpid() != _FIRST:
        return
    look = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while (ended := os.waitid(os.P_ALL, 0, look)) is not None and ended.si_pid != but:
        os.waitpid(ended.si_pid, 0)


def _serve(child: int) -> int:
    """Passes signals on until a child ends; gives its exit code, as shells number them."""
    while True:
        number = signal.sigwait(_AWAITED)
        if number != signal.SIGCHLD:
            os.kill(child, number)
            continue
        # Signals of one kind are not counted: several may have ended.
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG)) is not None:
            if ended.si_pid == child:
                killed = ended.si_code != os.CLD_EXITED
                return 128 + ended.si_status if killed else ended.si_status
