"""Writes reports as events in a background thread with little processor time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.core.tensorboard.events import EventFile, SpoolTail

PAUSE_SECONDS = 1.0
COPY_SECONDS = 30.0
LAST_SECONDS = 10.0
"""How long the end of a run may take to write what is left."""
_CHUNK_BYTES = 64 << 10
_REST_PER_WORK = 9.0
_log = logging.getLogger("resolute.core")


class EventThread:
    """Reads the spool of this process and writes events.

    It works at most a tenth of the time, so that it does not slow the training, whose interpreter it shares.

    Args:
        tail: The source of reports.
        events: The file for the events.
        copy: Called at intervals to copy the files to their destination.
        clock: Measures the work.
    """

    def __init__(
        self, tail: SpoolTail, events: EventFile, *, copy: Callable[[], None], clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._tail = tail
        self._events = events
        self._copy = copy
        self._clock = clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="resolute-tensorboard", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Writes what is left, within limits, and ends."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        deadline = self._clock.monotonic() + LAST_SECONDS
        while self.pump():
            if self._clock.monotonic() > deadline:
                _log.warning(
                    "TensorBoard events are incomplete: there were more reports than time to write them"
                )
                break
        self._tail.close()
        self._events.close()

    def pump(self) -> bool:
        """Writes the next events; False when there are no more reports yet."""
        records = self._tail.read(_CHUNK_BYTES)
        self._events.write(records)
        return bool(records)

    def _run(self) -> None:
        pause = PAUSE_SECONDS
        copied = self._clock.monotonic()
        while not self._stop.wait(pause):
            begin = self._clock.monotonic()
            try:
                more = self.pump()
                if begin - copied > COPY_SECONDS:
                    self._copy()
                    copied = begin
            except Exception:  # noqa: BLE001 - a view of the metrics must not end the training
                _log.exception("TensorBoard events cannot be written; the metrics themselves are safe")
                return
            work = (self._clock.monotonic() - begin) * _REST_PER_WORK
            pause = work if more else max(work, PAUSE_SECONDS)
