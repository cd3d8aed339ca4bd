"""Passwords whose hashes cost little, for tests that try many on a busy machine."""

from __future__ import annotations

import pytest

from resolute_experiments.accounts import passwords


def make_hashes_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes new hashes by scrypt at little cost, until the test ends."""
    monkeypatch.setattr(passwords, "_COST", passwords._Cost(n=2**4))
