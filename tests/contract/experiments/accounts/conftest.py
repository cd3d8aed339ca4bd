"""Fixtures of these tests."""

from __future__ import annotations

import pytest
from support.passwords import make_hashes_cheap


@pytest.fixture(autouse=True)
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes of the usual cost would make these tests wait for a busy machine."""
    make_hashes_cheap(monkeypatch)
