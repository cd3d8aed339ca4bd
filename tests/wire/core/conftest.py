"""A trial on a small cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.core_cluster import Trial, cluster


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trial]:
    """This process as the only one of a trial whose one operation has length 8."""
    with cluster(tmp_path) as running:
        running.enter(monkeypatch)
        yield running
