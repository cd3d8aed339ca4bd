"""Uploads of checkpoints in the background, while training continues."""

from __future__ import annotations

import threading
from collections.abc import Callable


class BackgroundWorker:
    """A thread that does one task at a time for another thread.

    A failure is raised at the next wait, so no failure is lost.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def begin(self, work: Callable[[], None]) -> None:
        """Begins work after the previous work has ended.

        Raises:
            Exception: The previous work failed; this is its error, and the new work is not begun.
        """
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(work,), name="resolute-checkpoint-background")
        self._thread.start()

    def wait(self) -> None:
        """Waits for the work under way, if there is any.

        Raises:
            Exception: The work failed; its error is raised once.
        """
        thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            thread.join()
        except BaseException:
            # Interrupted: it is still under way.
            self._thread = thread
            raise
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as failure:  # noqa: BLE001 - raised again by the one that waits
            self._failure = failure
