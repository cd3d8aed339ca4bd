"""How values are written for people and for programs."""

from __future__ import annotations

import json
import math
from datetime import datetime, timezone
from typing import Any

import pytest

from resolute.cli.display.output import Column, Format, format_value, print_items, print_json, to_plain
from resolute.client.schema.records import FileRecord
from resolute.client.schema.states import TrialState


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "yes"),
        (0.1 + 0.2, "0.3"),
        (1e-7, "1e-07"),
        (math.nan, "nan"),
        (TrialState.RUNNING, "RUNNING"),
        ((1, 2), "1, 2"),
        ({"a": 1, "b": {"c": 0.5}}, "a=1, b={c=0.5}"),
        ("x", "x"),
    ],
)
def test_values_are_written_for_people(value: Any, text: str) -> None:
    assert format_value(value) == text


def test_values_are_plain_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    moment = datetime(2030, 1, 31, tzinfo=timezone.utc)
    value = {"n": math.nan, "i": -math.inf, "t": moment, "f": FileRecord("a", 1, ""), "s": TrialState.ERROR}
    print_json(value)
    assert json.loads(capsys.readouterr().out) == {
        "n": "NaN",
        "i": "-Infinity",
        "t": "2030-01-31T00:00:00+00:00",
        "f": {"path": "a", "size": 1, "digest": "", "home": ""},
        "s": "ERROR",
    }
    assert to_plain({1: {2}}) == {"1": [2]}


def test_piped_tables_are_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    columns = (Column[str]("Long", lambda item: item), Column[str]("Length", len, right=True))
    print_items(["x" * 500], columns, output=Format.TABLE)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["x" * 500, "500"]
