from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from support.clocks import ManualClock

from resolute.errors import (
    DeadlineError,
    InternalError,
    NotFoundError,
    RunSupersededError,
    UnauthenticatedError,
    UnavailableError,
)
from resolute_launch.control_plane.outage_timeout import OutageTimeout


class Eager(threading.Event):
    """An event whose waits take no time, as if they were over."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.advance(timeout or 0.0)
        return self.is_set()


def failing(*failures: Exception) -> Callable[[], str]:
    answers = iter(failures)

    def call() -> str:
        for failure in answers:
            raise failure
        return "answer"

    return call


def attempt(call: Callable[[], str], *, seconds: float = 60.0) -> tuple[str, OutageTimeout]:
    clock = ManualClock()
    outage_timeout = OutageTimeout(seconds, clock=clock)
    return outage_timeout.retry(call, stop=Eager(clock), purpose="testing"), outage_timeout


def test_an_absence_is_waited_out() -> None:
    call = failing(UnavailableError("away"), DeadlineError("slow"), UnauthenticatedError("expired"))
    assert attempt(call)[0] == "answer"


@pytest.mark.parametrize("failure", [NotFoundError("gone"), RunSupersededError("old")])
def test_an_answer_that_cannot_change_is_raised_at_once(failure: Exception) -> None:
    call = failing(failure)
    with pytest.raises(type(failure)):
        attempt(call)
    assert call() == "answer"


def test_an_absence_that_lasts_too_long_is_raised() -> None:
    clock = ManualClock()
    outage_timeout = OutageTimeout(60, clock=clock)
    with pytest.raises(UnavailableError):
        outage_timeout.retry(
            failing(*[UnavailableError("away")] * 1000), stop=Eager(clock), purpose="testing"
        )
    assert outage_timeout.exhausted


def test_a_defect_of_the_server_is_not_tried_for_ever() -> None:
    call = failing(*[InternalError("bug")] * 6)
    with pytest.raises(InternalError):
        attempt(call)
    assert attempt(failing(*[InternalError("hiccup")] * 3))[0] == "answer"


def test_a_stop_allows_one_last_attempt() -> None:
    clock = ManualClock()
    stop = Eager(clock)
    stop.set()
    outage_timeout = OutageTimeout(60, clock=clock)
    with pytest.raises(UnavailableError):
        outage_timeout.retry(failing(UnavailableError("away")), stop=stop, purpose="testing")


def test_every_answer_renews_the_outage_timeout() -> None:
    clock = ManualClock()
    outage_timeout = OutageTimeout(60, clock=clock)
    clock.advance(59)
    assert not outage_timeout.exhausted
    with pytest.raises(NotFoundError):
        outage_timeout.retry(failing(NotFoundError("gone")), stop=Eager(clock), purpose="testing")
    clock.advance(59)
    assert not outage_timeout.exhausted
    clock.advance(1)
    assert outage_timeout.exhausted


@pytest.mark.parametrize("seconds", [3 * 3600.0, 86_400.0])
def test_time_during_which_the_supervisor_was_stopped_is_no_outage(seconds: float) -> None:
    clock = ManualClock()
    outage_timeout = OutageTimeout(3600, clock=clock)
    clock.advance(seconds)
    assert not outage_timeout.exhausted, "it could not ask"
    for _ in range(3600 // 60 - 1):
        clock.advance(59)
        assert not outage_timeout.exhausted
    clock.advance(60)
    assert outage_timeout.exhausted
