"""Prints the stacks of all threads on SIGUSR1, to show where a training hangs."""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from types import FrameType
from typing import Any


class StackDump:
    """Handles SIGUSR1: prints the stacks of all threads to stderr, then calls the previous handler."""

    def __init__(self) -> None:
        self._previous: Any = None
        self._installed = False

    def install(self) -> None:
        """Sets the handler. Does nothing outside of the main thread, where Python allows no handlers."""
        if threading.current_thread() is threading.main_thread() and not self._installed:
            self._previous = signal.signal(signal.SIGUSR1, self._handle)
            self._installed = True

    def remove(self) -> None:
        """Restores the previous handler, unless another one was set since."""
        if self._installed and threading.current_thread() is threading.main_thread():
            # Handlers are compared by ==: bound methods are new objects each time.
            if signal.getsignal(signal.SIGUSR1) == self._handle:
                signal.signal(signal.SIGUSR1, self._previous or signal.SIG_DFL)
            self._installed = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, stack in sys._current_frames().items():  # noqa: SLF001 - the documented way to all stacks
            print(f"Stack of thread {names.get(ident, ident)}:", file=sys.stderr)
            traceback.print_stack(stack, file=sys.stderr)
        sys.stderr.flush()
        if callable(self._previous):
            self._previous(number, frame)
