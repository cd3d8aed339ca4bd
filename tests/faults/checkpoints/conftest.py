"""A trial whose checkpoints go to a real store, and what may lie between the two."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters.trial_cluster import Trial, cluster
from support.object_stores.proxy import StoreProxy, store_proxy
from support.object_stores.s3 import S3Server, s3_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    """A real S3 server."""
    with s3_server(tmp_path / "s3") as running:
        yield running


@pytest.fixture
def proxy(server: S3Server) -> Iterator[StoreProxy]:
    """The way to it, on which anything can happen."""
    with store_proxy(server) as running:
        yield running


@pytest.fixture
def trial(tmp_path: Path, server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trial]:
    """This process as a trial, beside services that know the store and tidy up at once."""
    for name, value in server.variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RESOLUTE_CHECKPOINTS_ABANDON_SECONDS", "0.001")
    monkeypatch.setenv("RESOLUTE_CHECKPOINTS_COLLECT_SECONDS", "0.2")
    with cluster(tmp_path) as running:
        running.enter(monkeypatch)
        yield running
