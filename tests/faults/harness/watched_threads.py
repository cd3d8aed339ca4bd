"""Threads whose failure is seen: one that dies must not leave others waiting for its work."""

from __future__ import annotations

import threading
from collections.abc import Callable


class WatchedThread:
    """A thread that keeps what ended it.

    Args:
        name: Says what it does, for messages.
        work: What it does, until it is asked to stop.
    """

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self._name = name
        self._work = work
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def check(self) -> None:
        """Makes sure that nothing has ended it.

        Raises:
            AssertionError: It failed; the message says how.
        """
        if self._failure is not None:
            raise AssertionError(f"the {self._name} failed: {self._failure!r}") from self._failure

    def join(self, seconds: float) -> None:
        """Waits until it has stopped.

        Raises:
            AssertionError: It failed, or is not done in time.
        """
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"the {self._name} did not stop within {seconds:g} s"
        self.check()

    def _run(self) -> None:
        try:
            self._work()
        except Exception as failure:  # noqa: BLE001 - whoever waits for its work raises it
            self._failure = failure
