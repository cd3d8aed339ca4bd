"""Runs a sender in a thread that its owner starts and stops."""

from __future__ import annotations

import logging
import threading

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.spool.delivery.sender import STUCK_AFTER_FAILURES, SpoolSender
from resolute.spool.doorbell import Doorbell

IDLE_SECONDS = 0.2
"""Seconds between looks while no process waits: the longest delay of a live report."""
_log = logging.getLogger("resolute.spool")


class SenderThread:
    """A named thread around one sender. Never start it in a process that forks workers of its own.

    Args:
        sender: The sender. The thread owns it from ``start`` to ``stop``.
        name: Name of the thread.
        idle_seconds: Seconds of the pause when there is nothing to send.
        wake: Event that ends a pause; None for one of its own.
        clock: Measures the time limit of ``drain``.
    """

    def __init__(
        self,
        sender: SpoolSender,
        *,
        name: str,
        idle_seconds: float = IDLE_SECONDS,
        wake: Doorbell | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._sender = sender
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._stop = threading.Event()
        self._wake = wake or threading.Event()
        self._end_pause = threading.Event()
        self._drained = threading.Condition()
        self._sweeps = 0
        self._goal = 0
        self._clean = False
        self._failures = 0
        self._stuck = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begins to send."""
        self._thread.start()

    @property
    def stuck(self) -> bool:
        """Whether waiting is useless: everything the sender tries fails, or the thread has ended."""
        return self._stuck or not self._thread.is_alive()

    def try_at_once(self) -> None:
        """Ends the pause after a failed call, which may be longer than the wait for the last records."""
        self._end_pause.set()
        self._wake.set()

    def drain(self, timeout: float) -> bool:
        """Waits until everything has arrived that is in the spools now. Call it once the writers are gone.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            Whether everything has arrived.
        """
        deadline = self._clock.monotonic() + timeout
        with self._drained:
            # The sweep under way may have passed a file before it grew: only a later one counts.
            goal = self._goal = self._sweeps + 2
            self._wake.set()
            while not (self._clean and self._sweeps >= goal):
                remaining = deadline - self._clock.monotonic()
                if remaining <= 0 or self.stuck:
                    return False
                if self._clean:
                    # Only one more look is missing: the pause of an idle thread would be a run's last delay.
                    self._wake.set()
                self._drained.wait(remaining)
        return True

    def stop(self) -> None:
        """Ends the thread and closes the spools. What has not arrived stays for the next sender."""
        self._stop.set()
        self._wake.set()
        self._thread.join()
        self._sender.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            if self._end_pause.is_set():
                self._end_pause.clear()
                self._sender.end_pause()
            busy = self._sweep()
            if not busy and self._sweeps >= self._goal:
                self._wake.wait(max(self._idle_seconds, self._sender.seconds_until_retry))
                self._wake.clear()

    def _sweep(self) -> bool:
        try:
            busy = self._sender.pump()
            clean = not busy and self._sender.drained()
        except Exception:  # noqa: BLE001 - history must go on arriving whatever one sweep does
            if not self._failures:
                _log.exception("sending failed unexpectedly; it goes on")
            self._failures += 1
            busy, clean = False, False
        else:
            self._failures = 0
        with self._drained:
            self._sweeps += 1
            self._clean = clean
            self._stuck = self._sender.stuck or self._failures >= STUCK_AFTER_FAILURES
            self._drained.notify_all()
        return busy
