"""Passwords: what is kept of them, and how often they may be tried."""

from __future__ import annotations

import pytest
from support.clocks import ManualClock

from resolute.errors import InvalidArgumentError, QuotaError
from resolute_experiments.passwords import LoginThrottle, hash_password, matches


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


def test_five_failures_make_a_name_wait_a_minute_and_no_other_name() -> None:
    clock = ManualClock()
    attempts = LoginThrottle(clock)
    for _ in range(5):
        attempts.check("ada")
        attempts.failed("ada")
    with pytest.raises(QuotaError, match="try again in a minute"):
        attempts.check("ada")
    attempts.check("grace")
    clock.advance(61)
    attempts.check("ada")


def test_a_right_password_clears_the_failures() -> None:
    attempts = LoginThrottle(ManualClock())
    for _ in range(4):
        attempts.failed("ada")
    attempts.succeeded("ada")
    attempts.failed("ada")
    attempts.check("ada")
