"""Passwords: what is kept of them."""

from __future__ import annotations

import base64
import hashlib

import pytest

from resolute.errors import InvalidArgumentError
from resolute_experiments.accounts.passwords import (
    hash_password,
    is_outdated,
    matches,
    require_good,
)


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
        require_good(password, user_name="ada")


@pytest.mark.parametrize(
    "password",
    [
        *(
            "password",
            "Password1!",
            "P@ssw0rd!2024",
            "PASSWORD",
            "passwordpassword",
            "Passwort!!",
            "letmein123",
        ),
        *("12345678", "87654321", "1234-5678", "31081990", "00000000", "aaaaaaaa", "abcabcabc", "Abcdefgh"),
        *(
            "qwertyui",
            "1qaz2wsx",
            "q1w2e3r4",
            "asdf1234",
            "Summer2024!",
            "admin123",
            "resolute1",
            "iloveyou2",
        ),
        *("lovelace1", "Ada.Lovelace1", "lovelaceada", "password of ada"),
    ],
)
def test_a_password_that_is_guessed_first_is_refused(password: str) -> None:
    with pytest.raises(InvalidArgumentError, match="guessed first") as refused:
        require_good(password, user_name="ada.lovelace")
    assert refused.value.violations[0].field == "password"


@pytest.mark.parametrize(
    "password",
    [
        *("correct horse", "what only ada knows", "her-secret", "navy cobol", "longenough", "another one"),
        *(
            "tr0ub4dor&3",
            "x7!kQ9zz",
            "7fK2mPq9",
            "m7Xq!t4b",
            "Old-password-of-ada-1",
            "\u00fcberlang\u2603\u2603",
        ),
    ],
)
def test_others_are_taken(password: str) -> None:
    require_good(password, user_name="ada")


def test_hashes_of_earlier_versions_match_and_are_outdated() -> None:
    salt = b"0123456789abcdef"
    digest = hashlib.scrypt(b"correct horse", salt=salt, n=2**14, r=8, p=1, dklen=32)
    earlier = "$".join(["scrypt", "16384", "8", "1", *(base64.b64encode(x).decode() for x in (salt, digest))])
    assert matches("correct horse", earlier)
    assert not matches("correct horsf", earlier)
    assert is_outdated(earlier)
    now = hash_password("correct horse")
    assert now.startswith("scrypt$131072$8$1$")
    assert not is_outdated(now)
