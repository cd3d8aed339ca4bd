from __future__ import annotations

import os
import signal
import threading

from support.waiting import wait_until

from resolute_launch.processes.signal_handlers import SignalHandlers


def test_requests_to_leave_are_counted_and_told() -> None:
    told = threading.Event()
    before = signal.getsignal(signal.SIGTERM)
    signal_handlers = SignalHandlers()
    try:
        signal_handlers.subscribe(told.set)
        assert signal_handlers.count == 0
        os.kill(os.getpid(), signal.SIGTERM)
        assert told.wait(60)
        os.kill(os.getpid(), signal.SIGINT)
        wait_until(lambda: signal_handlers.count == 2)
    finally:
        signal_handlers.close()
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_request_is_seen_while_the_main_thread_holds_the_lock_it_wakes() -> None:
    attention = threading.Condition()
    seen = threading.Event()

    def listener() -> None:
        with attention:
            attention.notify_all()
        seen.set()

    signal_handlers = SignalHandlers()
    try:
        signal_handlers.subscribe(listener)
        with attention:
            os.kill(os.getpid(), signal.SIGTERM)
            assert attention.wait_for(lambda: signal_handlers.count == 1, 60)
        assert seen.wait(60)
    finally:
        signal_handlers.close()
