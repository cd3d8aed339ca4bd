"""What a container says of its end in a few kilobytes."""

from __future__ import annotations

import pytest

from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.last_word import BEGAN, LastWord, hear, say

RECORD = ExitRecord(
    exit_code=3,
    acknowledged=True,
    early_exit_reason="INVALID_HP",
    failure="it failed",
    failed_before_entrypoint=False,
    end_time=12.5,
)


def test_what_is_said_is_heard() -> None:
    assert hear(say(RECORD)) == LastWord(began=True, exit=RECORD)


@pytest.mark.parametrize("text", ["line\n" * 5000, "ü" * 5000, '"\\' * 5000])
def test_of_a_long_failure_the_end_is_said(text: str) -> None:
    said = say(ExitRecord(exit_code=1, failure=text))
    assert len(said.encode()) <= 4096
    heard = hear(said).exit
    assert heard is not None
    assert text.endswith(heard.failure)
    assert len(heard.failure) > 200


def test_who_began_and_said_no_more_was_lost() -> None:
    assert hear(BEGAN) == LastWord(began=True, exit=None)


@pytest.mark.parametrize("text", ["", "exec format error", "[1]", "{}", '{"exit_code": 1}', '"x"'])
def test_words_of_somebody_else_are_no_beginning(text: str) -> None:
    assert hear(text) == LastWord(began=False, exit=None)
