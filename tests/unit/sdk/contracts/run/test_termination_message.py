"""What a container says of its end in a few kilobytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.termination_message import BEGAN, TerminationMessage, parse_message, write_message

RECORD = ExitRecord(
    exit_code=3,
    acknowledged=True,
    early_exit_reason="INVALID_HP",
    failure="it failed",
    failed_before_entrypoint=False,
    end_time=12.5,
)


def test_what_is_said_is_heard() -> None:
    assert parse_message(write_message(RECORD)) == TerminationMessage(began=True, exit=RECORD)


@pytest.mark.parametrize("text", ["line\n" * 5000, "ü" * 5000, '"\\' * 5000])
def test_of_a_long_failure_the_end_is_said(text: str) -> None:
    message = write_message(ExitRecord(exit_code=1, failure=text))
    assert len(message.encode()) <= 4096
    parsed = parse_message(message).exit
    assert parsed is not None
    assert text.endswith(parsed.failure)
    assert len(parsed.failure) > 200


def test_who_began_and_said_no_more_was_lost() -> None:
    assert parse_message(BEGAN) == TerminationMessage(began=True, exit=None)


@pytest.mark.parametrize("text", ["", "exec format error", "[1]", "{}", '{"exit_code": 1}', '"x"'])
def test_words_of_somebody_else_are_no_beginning(text: str) -> None:
    assert parse_message(text) == TerminationMessage(began=False, exit=None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("exit_code", "3"),
        ("exit_code", True),
        ("exit_code", None),
        ("exit_code", 1.5),
        ("exit_code", 2**31),
        ("exit_code", -(2**31)),
        ("acknowledged", 1),
        ("acknowledged", "no"),
        ("failed_before_entrypoint", []),
        ("early_exit_reason", "x" * 33),
        ("early_exit_reason", "NO_REASON"),
        ("early_exit_reason", ["INVALID_HP"]),
        ("failure", None),
        ("end_time", float("nan")),
        ("end_time", float("inf")),
        ("end_time", -1.0),
        ("end_time", 10**400),
        ("end_time", True),
        ("end_time", "12"),
    ],
)
def test_a_record_with_values_that_none_has_is_no_record(name: str, value: Any) -> None:
    """Who runs in the container may write there: a wrong value must not get as far as a database."""
    message = json.loads(write_message(RECORD))
    assert parse_message(json.dumps({**message, name: value})) == TerminationMessage(began=True, exit=None)


def test_of_a_failure_that_no_database_keeps_the_rest_is_kept() -> None:
    parsed = parse_message(write_message(ExitRecord(exit_code=1, failure="a\0b\ud800c"))).exit
    assert parsed is not None
    # A failure of this test must not print what cannot be encoded.
    assert ascii(parsed.failure) == ascii("a\ufffdb?c")


def test_words_of_ever_deeper_lists_are_no_beginning() -> None:
    assert parse_message("[" * 100_000) == TerminationMessage(began=False, exit=None)
