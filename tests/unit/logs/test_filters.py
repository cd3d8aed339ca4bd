"""Filters from the wire."""

from __future__ import annotations

import uuid

import pytest

from resolute.api.logs.v1 import line_pb2
from resolute.errors import InvalidArgumentError
from resolute_logs.queries.filters import parse_filter


def _filter(**fields: object) -> line_pb2.LineFilter:
    return line_pb2.LineFilter(trial_id=str(uuid.uuid4()), **fields)  # type: ignore[arg-type]


def test_an_empty_filter_wants_every_line() -> None:
    wanted = parse_filter(_filter())
    assert wanted.conditions() == []
    assert not wanted.needs_row_check
    assert wanted.matches("anything")


def test_ascii_text_is_left_to_the_database_and_other_text_is_not() -> None:
    assert not parse_filter(_filter(text="loss")).needs_row_check
    wanted = parse_filter(_filter(text="Größe"))
    assert wanted.needs_row_check
    assert wanted.matches("die GRÖSSE ist")
    assert not wanted.matches("groesse")


def test_the_beginning_of_time_is_a_time() -> None:
    message = _filter()
    message.start_time.SetInParent()
    assert parse_filter(message).start_time == 0


def test_a_trial_must_be_named_by_its_uuid() -> None:
    with pytest.raises(InvalidArgumentError, match=r"filter.trial_id is '12'; it must be a UUID"):
        parse_filter(line_pb2.LineFilter(trial_id="12"))
