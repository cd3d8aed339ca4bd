"""The fault harness itself: what fails or hangs in it is named, instead of being waited for."""

from __future__ import annotations

import threading

import pytest
from faults.harness.watched_threads import WatchedThread


def test_whoever_waits_hears_of_a_thread_that_failed() -> None:
    def fail() -> None:
        raise RuntimeError("no server started")

    thread = WatchedThread("killer", fail)
    thread.check()
    thread.start()
    with pytest.raises(AssertionError, match=r"the killer failed: RuntimeError\('no server started'\)"):
        thread.join(60)
    with pytest.raises(AssertionError, match="the killer failed"):
        thread.check()


def test_a_thread_that_does_not_stop_is_named() -> None:
    stop = threading.Event()

    def wait() -> None:
        stop.wait()

    thread = WatchedThread("starter", wait)
    thread.start()
    with pytest.raises(AssertionError, match=r"the starter did not stop within 0\.01 s"):
        thread.join(0.01)
    stop.set()
    thread.join(60)
