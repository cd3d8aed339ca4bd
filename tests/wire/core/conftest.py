"""A trial on a small cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters.trial_cluster import Trial, cluster
from support.object_stores.s3 import S3Server, s3_server


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trial]:
    """This process as the only one of a trial whose one operation has length 8."""
    with cluster(tmp_path) as running:
        running.enter(monkeypatch)
        yield running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    """A real S3 server."""
    with s3_server(tmp_path / "s3") as running:
        yield running


@pytest.fixture
def bucket_trial(tmp_path: Path, server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trial]:
    """This process as a trial, beside services that are told the keys of the store."""
    for name, value in server.variables().items():
        monkeypatch.setenv(name, value)
    with cluster(tmp_path) as running:
        running.enter(monkeypatch)
        yield running
