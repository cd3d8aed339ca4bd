"""Names of users."""

from __future__ import annotations

import pytest

from resolute_experiments.accounts.names import is_user_name


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("ada", True),
        ("ada-b@example.org", True),
        (".x", True),
        ("-x", False),
        ("--help", False),
        ("", False),
        ("a b", False),
        ("x" * 129, False),
    ],
)
def test_what_a_user_may_be_called(name: str, allowed: bool) -> None:
    assert is_user_name(name) is allowed
