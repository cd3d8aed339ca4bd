"""Failures are retried at a growing pause, and said once."""

from __future__ import annotations

import structlog

from resolute.contracts.calls.logged_backoff import LONGEST_PAUSE_SECONDS, LoggedBackoff
from resolute.errors import UnavailableError


def test_an_outage_is_one_line_however_often_it_is_met() -> None:
    with structlog.testing.capture_logs() as lines:
        backoff = LoggedBackoff(structlog.get_logger(), "a step failed", experiment="e")
        pauses = [backoff.failed(UnavailableError("away")) for _ in range(7)]
    assert max(pauses) <= 1.5 * LONGEST_PAUSE_SECONDS
    assert max(pauses[:1]) < min(pauses[4:])
    (line,) = lines
    assert (line["experiment"], line["reason"], line["exc_info"]) == ("e", "UnavailableError: away", None)


def test_another_failure_is_said_and_a_defect_with_its_traceback() -> None:
    defect = ValueError("a defect")
    with structlog.testing.capture_logs() as lines:
        backoff = LoggedBackoff(structlog.get_logger(), "a step failed")
        backoff.failed(UnavailableError("away"))
        backoff.failed(defect)
        backoff.failed(defect)
    assert [line["exc_info"] for line in lines] == [None, defect]


def test_success_begins_anew() -> None:
    with structlog.testing.capture_logs() as lines:
        backoff = LoggedBackoff(structlog.get_logger(), "a step failed")
        for _ in range(5):
            backoff.failed(UnavailableError("away"))
        backoff.succeeded()
        assert backoff.failed(UnavailableError("away")) <= 0.3
    assert len(lines) == 2
