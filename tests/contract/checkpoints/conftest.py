"""A migrated database and an empty directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.databases.prepared import migrate

from resolute_serving.database.engine import create_engine


@pytest.fixture
def url(database_url: str) -> str:
    """A database with the registry's tables."""
    engine = create_engine(database_url, name="checkpoints", writes=True)
    migrate(engine, package="resolute_checkpoints", schema="checkpoints")
    engine.dispose()
    return database_url


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where checkpoints lie."""
    path = tmp_path / "checkpoints"
    path.mkdir()
    return path
