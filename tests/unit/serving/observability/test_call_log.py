"""What callers who are refused before they are known leave in the log."""

from __future__ import annotations

import json
import logging

import pytest
from support.clocks import ManualClock

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
    assert [json.loads(record.getMessage())["calls"] for record in caplog.records] == [1, 100_001]
