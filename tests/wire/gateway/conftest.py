"""Fixtures of these tests."""

from __future__ import annotations

import pytest
from support.passwords import make_hashes_cheap


@pytest.fixture
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes of the usual cost would make tests that try many wait for a busy machine."""
    make_hashes_cheap(monkeypatch)
