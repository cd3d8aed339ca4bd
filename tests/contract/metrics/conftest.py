"""The metrics service on each backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.reporting import Metrics, metrics_on


@pytest.fixture
def metrics(database_url: str) -> Iterator[Metrics]:
    with metrics_on(database_url) as service:
        yield service
