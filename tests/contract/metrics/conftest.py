"""The metrics service on each backend: one database a module, trials of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.services.metrics import Metrics, metrics_on


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metrics]:
    if request.param == "sqlite":
        folder: Path = tmp_path_factory.mktemp("metrics")
        url = f"sqlite:///{folder / 'metrics.sqlite'}"
    else:
        url = request.getfixturevalue("postgres_server").new_database()
    with metrics_on(url) as service:
        yield service


@pytest.fixture
def metrics(shared: Metrics) -> Metrics:
    return shared.anew()


@pytest.fixture
def alone(database_url: str) -> Iterator[Metrics]:
    """The only user of its database."""
    with metrics_on(database_url) as service:
        yield service
