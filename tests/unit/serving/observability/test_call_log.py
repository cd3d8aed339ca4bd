"""What calls that fail leave in the log, however many they are."""

from __future__ import annotations

import json
import logging

import pytest
from structlog.testing import capture_logs
from support.clocks import ManualClock

from resolute_serving.context import Role, User, current_principal
from resolute_serving.observability.call_log import CallLog


def test_refused_anonymous_calls_leave_few_bytes_however_many_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    log = CallLog(clock)
    with caplog.at_level(logging.INFO, logger="rpc"):
        log.write("/a.B/C", "UNAUTHENTICATED", 0.0, detail="x" * 10_000)
        assert len(caplog.records) == 1
        for _ in range(100_000):
            log.write("/a.B/C", "UNAUTHENTICATED", 0.0, detail="x" * 10_000)
        assert len(caplog.records) == 1
        clock.advance(11.0)
        log.write("/a.B/C", "UNAUTHENTICATED", 0.0, detail="x" * 10_000)
    lines = [f"{record.levelname} {record.name} {record.getMessage()}" for record in caplog.records]
    assert all(len(line) < 100 for line in lines)
    assert [json.loads(record.getMessage())["calls"] for record in caplog.records] == [1, 100_000, 1]


def test_calls_of_a_user_that_fail_alike_have_a_few_lines_and_a_number() -> None:
    clock = ManualClock()
    log = CallLog(clock)
    known = current_principal.set(User("ada", Role.VIEWER))
    try:
        with capture_logs() as lines:
            for _ in range(1000):
                log.write("/a.B/C", "INVALID_ARGUMENT", 0.0, detail="too many bytes")
            log.write("/a.B/C", "NOT_FOUND", 0.0, detail="no experiment 7")
            assert len(lines) == 6
            clock.advance(11.0)
            log.write("/a.B/C", "NOT_FOUND", 0.0, detail="no experiment 8")
    finally:
        current_principal.reset(known)
    assert [line.get("detail") for line in lines[5:]] == ["no experiment 7", None, "no experiment 8"]
    counted = {"calls": 995, "actor": "ada", "method": "/a.B/C", "code": "INVALID_ARGUMENT"}
    assert counted.items() <= lines[6].items()
