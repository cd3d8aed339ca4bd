"""Ctrl-C that libraries cannot suppress."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import final


@final
class Interrupts:
    """Records Ctrl-C within its block, and raises ``KeyboardInterrupt`` as usual.

    The exception alone can get lost. It is raised in the code that the main thread is executing; if that is a
    callback of native code or a destructor, Python prints the exception and continues.
    """

    def __init__(self) -> None:
        self._came = False
        self._before: object = None

    def __enter__(self) -> Interrupts:
        in_main = threading.current_thread() is threading.main_thread()
        # Where Ctrl-C is ignored, as in a job of the background, it stays so.
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def check(self) -> None:
        """Raises ``KeyboardInterrupt`` if Ctrl-C came, also if it was raised before and got lost."""
        if self._came:
            raise KeyboardInterrupt

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._came = True
        raise KeyboardInterrupt
