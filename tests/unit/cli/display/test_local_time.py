"""Times that scripts report are shown in every zone, also those for which it has no year."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timezone

import pytest

from resolute.cli.display.output import format_value

FIRST = datetime(1, 1, 1, tzinfo=timezone.utc)
LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)


@pytest.fixture(params=["EST5", "JST-9", "UTC0"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with monkeypatch.context() as environment:
        environment.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


def test_a_usual_time_is_that_of_the_zone(zone: str) -> None:
    hour = {"EST5": "07", "JST-9": "21", "UTC0": "12"}[zone]
    noon = datetime(2026, 11, 29, 12, 0, 30, tzinfo=timezone.utc)
    assert format_value(noon) == f"2026-11-29 {hour}:00:30"


def test_the_first_and_the_last_moment_are_shown(zone: str) -> None:
    texts = [format_value(FIRST), format_value(LAST)]
    utc = ["1-01-01 00:00:00", "9999-12-31 23:59:59"]
    early, late = (f"{text} UTC" for text in utc)
    if zone == "EST5":
        assert texts[0].lstrip("0") == early
    elif zone == "JST-9":
        assert texts[1] == late
    else:
        assert [text.lstrip("0") for text in texts] == utc
