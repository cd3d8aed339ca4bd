"""Watches the signal of an allocation, so that it arrives at once instead of with the next renewal."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable

from resolute.contracts.calls.backoff import Backoff
from resolute.errors import ResoluteError
from resolute_launch.control_plane.client import ControlPlane, SignalStream
from resolute_launch.control_plane.signal_state import SignalState

_STOP_SECONDS = 2.0
"""How long ``stop`` waits for the thread: what holds it up ends with its channel, soon after."""
_log = logging.getLogger("resolute.supervisor")


class SignalWatcher:
    """A thread that watches one stream. If the stream breaks, the thread reopens it from the last revision.

    Args:
        control: The control plane.
        signal_state: Receives the signals.
        notify: Called in the thread when the directive has changed.
    """

    def __init__(
        self, control: ControlPlane, signal_state: SignalState, *, notify: Callable[[], None]
    ) -> None:
        self._control = control
        self._signal_state = signal_state
        self._notify = notify
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._stream: SignalStream | None = None
        self._thread = threading.Thread(target=self._watch, name="signal-watch", daemon=True)

    def start(self) -> None:
        """Starts to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Cancels the stream and waits, for a bounded time, until the thread has ended."""
        with self._lock:
            self._stop.set()
            if self._stream is not None:
                self._stream.cancel()
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            _log.warning("the stream of signals did not end when it was cancelled; it ends with the channel")

    def _watch(self) -> None:
        backoff = Backoff()
        while not self._stop.is_set():
            with contextlib.suppress(ResoluteError):
                self._follow(backoff)
            self._stop.wait(backoff.failed())

    def _follow(self, backoff: Backoff) -> None:
        with self._lock:
            if self._stop.is_set():
                return
            self._stream = self._control.watch_signal(after_revision=self._signal_state.revision)
        for response in self._stream:
            # The service answers: when this stream breaks, the next one is to be opened at once.
            backoff.succeeded()
            if response.HasField("signal") and self._signal_state.update(response.signal):
                self._notify()
