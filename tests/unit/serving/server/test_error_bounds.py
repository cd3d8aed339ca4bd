"""Errors with many faults reach their callers."""

from __future__ import annotations

import pytest

from resolute.errors import InvalidArgumentError, Violation
from resolute_serving.server.calls import to_status
from resolute_serving.server.error_bounds import bounded_message, bounded_violations


@pytest.mark.parametrize("letter", ["a", "é", "中", "\n", "%"])
def test_the_status_of_a_call_with_thousands_of_faults_fits_its_headers(letter: str) -> None:
    violations = [Violation(f"field[{number}]", letter * 50) for number in range(3_000)]
    error = InvalidArgumentError("\n".join(map(str, violations)), violations=violations)
    status = to_status(error)
    # Bytes in headers are in base 64.
    assert status.ByteSize() * 4 / 3 + len(bounded_message(str(error)).encode()) < 8000
    assert "more characters" in status.message


def test_the_first_faults_are_said_and_how_many_are_left_out() -> None:
    violations = [Violation(f"field[{number}]", "is wrong") for number in range(100_000)]
    kept = bounded_violations(violations)
    assert kept[:-1] == violations[: len(kept) - 1]
    assert len(kept) > 50
    assert kept[-1] == Violation("", f"and {100_000 - len(kept) + 1} more")


def test_short_errors_stay_as_they_are() -> None:
    violations = [Violation("a", "x"), Violation("b", "y")]
    assert bounded_violations(violations) == violations
    assert bounded_message("a is wrong: é\n") == "a is wrong: é\n"
    (huge,) = bounded_violations([Violation("f" * 10_000, "d" * 10_000)])
    assert (len(huge.field), len(huge.description)) == (200, 400)


def test_halves_of_surrogate_pairs_are_written_as_escape_sequences() -> None:
    error = InvalidArgumentError(
        "found \ud800", violations=[Violation("a\udfff", "\ud800")], metadata={"value": "\ud800"}
    )
    status = to_status(error)
    assert status.message == "found \\ud800"
    assert b"a\\udfff" in status.SerializeToString()
