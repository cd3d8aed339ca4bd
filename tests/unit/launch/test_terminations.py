from __future__ import annotations

import os
import signal
import threading

from support.control_plane import wait_until

from resolute_launch.terminations import Terminations


def test_requests_to_leave_are_counted_and_told() -> None:
    told = threading.Event()
    before = signal.getsignal(signal.SIGTERM)
    terminations = Terminations()
    try:
        terminations.subscribe(told.set)
        assert terminations.count == 0
        os.kill(os.getpid(), signal.SIGTERM)
        assert told.wait(5)
        os.kill(os.getpid(), signal.SIGINT)
        wait_until(lambda: terminations.count == 2)
    finally:
        terminations.close()
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_request_is_seen_while_the_main_thread_holds_the_lock_it_wakes() -> None:
    attention = threading.Condition()
    seen = threading.Event()

    def listener() -> None:
        with attention:
            attention.notify_all()
        seen.set()

    terminations = Terminations()
    try:
        terminations.subscribe(listener)
        with attention:
            os.kill(os.getpid(), signal.SIGTERM)
            assert attention.wait_for(lambda: terminations.count == 1, 5)
        assert seen.wait(5)
    finally:
        terminations.close()
