"""Turns SIGTERM and SIGINT into events to wait for, independent of the main thread."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_QUIT = 0


class SignalHandlers:
    """Counts requests to exit. Its thread sees them even while the main thread is in a long call.

    It must be created in the main thread. Python's handlers run only between Python's instructions and must
    take no lock, so here they do nothing: the C handler writes the number to a pipe, which the thread reads.
    """

    def __init__(self) -> None:
        self.count = 0
        """Requests so far."""
        self._listeners: list[Callable[[], None]] = []
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._writer, False)
        self._before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
        self._wakeup_before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._listen, name="signal_handlers", daemon=True)
        self._thread.start()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Has something called, in the thread, with every request from now on."""
        self._listeners.append(listener)

    def close(self) -> None:
        """Restores the previous signal handlers."""
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.write(self._writer, bytes((_QUIT,)))
        self._thread.join()
        os.close(self._reader)
        os.close(self._writer)

    def _listen(self) -> None:
        while True:
            for number in os.read(self._reader, 64):
                if number == _QUIT:
                    return
                if number in _SIGNALS:
                    self.count += 1
                    for listener in self._listeners:
                        listener()
