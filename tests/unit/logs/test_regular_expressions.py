"""Regular expressions of strangers."""

from __future__ import annotations

import pytest

from resolute.errors import InvalidArgumentError
from resolute_logs.queries.regular_expressions import Pattern


def test_a_pattern_is_searched_for_anywhere() -> None:
    assert Pattern(r"loss=\d+").matches("step 1 loss=7 done")
    assert not Pattern(r"^loss").matches("step 1 loss=7")


def test_characters_are_not_bytes() -> None:
    assert Pattern("^.ß$").matches("üß")
    assert Pattern("(?i)ÄH").matches("äh")


@pytest.mark.parametrize(
    ("text", "reason"), [("(", "missing"), ("(?=a)", "perl operator"), ("a{5000}", "repetition")]
)
def test_a_wrong_pattern_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidArgumentError, match=reason):
        Pattern(text)


def test_a_pattern_may_have_a_thousand_characters() -> None:
    Pattern("x" * 1000)
    with pytest.raises(InvalidArgumentError, match="longer than 1000"):
        Pattern("x" * 1001)
