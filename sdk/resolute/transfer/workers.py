"""Worker threads that process many items in parallel and stop together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar, final

_THREADS = 8
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class WorkCancelledError(Exception):
    """The work was cancelled, because other work failed or the user interrupted it."""


@final
class Cancellation:
    """Tells threads that their work is cancelled."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Has every thread stop that asks."""
        self._event.set()

    def check(self) -> None:
        """Returns if the work is still wanted.

        Raises:
            WorkCancelledError: It is not.
        """
        if self._event.is_set():
            raise WorkCancelledError

    def sleep(self, seconds: float) -> None:
        """Waits some seconds, or until the work is not wanted any more.

        Raises:
            WorkCancelledError: It is not.
        """
        self._event.wait(seconds)
        self.check()


def map_in_threads(
    work: Callable[[_Item], _Result], items: Iterable[_Item], *, stop: Cancellation
) -> list[_Result]:
    """Works on items, several at once.

    Args:
        work: What is done with each.
        items: The items.
        stop: Set by the first failure, or an interruption; what has not begun is dropped.

    Returns:
        The results, in the order of the items.
    """
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="resolute-download") as pool:
        try:
            futures = [pool.submit(work, item) for item in items]
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]
