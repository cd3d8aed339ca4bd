"""Pauses between attempts, and calls that wait for an outage to end."""

from __future__ import annotations

import pytest
from support.clocks import ManualClock

from resolute.contracts.calls.backoff import Backoff, retry
from resolute.errors import NotFoundError, UnavailableError


def test_pauses_double_up_to_a_limit_and_begin_anew_after_a_success() -> None:
    backoff = Backoff(first=0.2, longest=1.0, jitter=lambda: 0.5)
    assert [round(backoff.failed(), 6) for _ in range(5)] == [0.2, 0.4, 0.8, 1.0, 1.0]
    backoff.succeeded()
    assert (backoff.failures, backoff.failed()) == (0, 0.2)


def test_pauses_of_a_thousand_failures_stay_at_the_limit() -> None:
    backoff = Backoff(longest=3.0, jitter=lambda: 0.5)
    assert [backoff.failed() for _ in range(2000)][-1] == 3.0


def test_clients_that_fail_together_come_back_at_different_times() -> None:
    several = [
        [backoff.failed() for _ in range(10)] for backoff in (Backoff(longest=3.0), Backoff(longest=3.0))
    ]
    assert several[0] != several[1]
    assert all(0.1 <= pause <= 4.5 for pauses in several for pause in pauses)


def test_an_outage_is_measured_from_its_first_failure() -> None:
    clock = ManualClock()
    backoff = Backoff(clock=clock)
    clock.advance(5)
    assert backoff.failing_seconds == 0
    backoff.failed()
    clock.advance(3)
    backoff.failed()
    assert backoff.failing_seconds == 3
    backoff.succeeded()
    assert backoff.failing_seconds == 0


class Service:
    """Fails for some seconds of a clock."""

    def __init__(self, clock: ManualClock, *, away: float, failure: Exception) -> None:
        self._clock = clock
        self._until = clock.monotonic() + away
        self._failure = failure
        self.calls = 0

    def call(self) -> str:
        self.calls += 1
        if self._clock.monotonic() < self._until:
            raise self._failure
        return "answer"


def retried(service: Service, clock: ManualClock, *, outage_timeout: float) -> str:
    return retry(
        service.call, outage_timeout=outage_timeout, backoff=Backoff(clock=clock), sleep=clock.advance
    )


def test_a_call_waits_for_an_outage_to_end() -> None:
    clock = ManualClock()
    assert (
        retried(Service(clock, away=50, failure=UnavailableError("away")), clock, outage_timeout=100)
        == "answer"
    )


def test_a_call_fails_when_the_outage_lasts_longer_than_the_timeout() -> None:
    clock = ManualClock()
    began = clock.monotonic()
    with pytest.raises(UnavailableError, match="away"):
        retried(Service(clock, away=500, failure=UnavailableError("away")), clock, outage_timeout=100)
    assert clock.monotonic() - began <= 100


def test_an_answer_that_cannot_change_is_raised_at_once() -> None:
    clock = ManualClock()
    service = Service(clock, away=50, failure=NotFoundError("gone"))
    with pytest.raises(NotFoundError):
        retried(service, clock, outage_timeout=100)
    assert service.calls == 1


def test_a_call_is_made_as_often_as_it_may() -> None:
    clock = ManualClock()
    service = Service(clock, away=5000, failure=UnavailableError("away"))
    with pytest.raises(UnavailableError, match="away"):
        retry(service.call, attempts=3, backoff=Backoff(clock=clock), sleep=clock.advance)
    assert service.calls == 3
