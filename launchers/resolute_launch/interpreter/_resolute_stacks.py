"""Lets a run's supervisor ask each Python process for its stacks: by a signal, into a file of the run.

The folder of this module is on ``PYTHONPATH`` of every run, and the interpreter may have any version, so the
module imports only the standard library. The handler is written in C and needs no lock: a process also
answers while it waits in a library, or while it holds Python's lock for ever.
"""

import os
import signal

RUN_DIRECTORY = "RESOLUTE_RUN_DIR"
FILE = "stacks"
"""In the run directory: takes the stacks of every process, one after the other."""
STACK_SIGNAL = signal.SIGURG
"""Scripts leave it alone, and it does nothing to a process that handles it no more, as at its end."""


def install() -> None:
    """Answers the signal from now on; forked children do, too. Outside of a run this does nothing."""
    directory = os.environ.get(RUN_DIRECTORY)
    if not directory:
        return
    import faulthandler

    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(os.path.join(directory, FILE), flags, 0o600)  # noqa: PTH118
        faulthandler.register(STACK_SIGNAL, file=descriptor, all_threads=True, chain=False)
    except (OSError, ValueError, RuntimeError):
        # A full disk, or a program that embeds Python: it runs without.
        return
