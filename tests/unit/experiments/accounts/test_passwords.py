"""Passwords: what is kept of them."""

from __future__ import annotations

import pytest

from resolute.errors import InvalidArgumentError
from resolute_experiments.accounts.passwords import hash_password, matches


def test_only_the_password_that_was_set_matches() -> None:
    stored = hash_password("correct horse")
    assert matches("correct horse", stored)
    assert not matches("correct horsf", stored)
    assert not matches("", stored)
    assert "correct horse" not in stored


def test_the_same_password_is_kept_differently_each_time() -> None:
    assert hash_password("correct horse") != hash_password("correct horse")


def test_without_a_stored_password_nothing_matches() -> None:
    assert not matches("", "")
    assert not matches("anything", "")


@pytest.mark.parametrize("password", ["", "seven77", "x" * 1025])
def test_a_password_has_a_length(password: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"8 to 1024 characters; this one has {len(password)}"):
        hash_password(password)
