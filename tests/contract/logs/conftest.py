"""The logs service on each backend: one database a module, trials of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.services.logs import Logs, logs_on


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logs]:
    if request.param == "sqlite":
        folder: Path = tmp_path_factory.mktemp("logs")
        url = f"sqlite:///{folder / 'logs.sqlite'}"
    else:
        url = request.getfixturevalue("postgres_server").new_database()
    with logs_on(url) as service:
        yield service


@pytest.fixture
def logs(shared: Logs) -> Logs:
    return shared.anew()


@pytest.fixture
def alone(database_url: str) -> Iterator[Logs]:
    """The only user of its database."""
    with logs_on(database_url) as service:
        yield service
