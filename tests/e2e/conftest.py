"""End-to-end tests drive whole clusters: one that all of a worker's tests share, or one of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from front.clusters import ClusterFronts
from support.certificates import Authority
from support.clusters.embedded import EmbeddedCluster, embedded

from resolute.errors import IllegalTransitionError


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session", autouse=True)
def front(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """With ``--front nginx`` or ``--front envoy``, commands reach clusters by such a proxy alone."""
    kind = request.config.option.front
    if not kind:
        yield
        return
    folder = tmp_path_factory.mktemp("front")
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        fronts = ClusterFronts(kind, folder, Authority.create(folder), stack)
        patch.setattr(EmbeddedCluster, "front", fronts)
        yield


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """A cluster of two slots that this process's tests use one after the other."""
    with embedded(tmp_path_factory.mktemp("home") / "h", slots=2) as running:
        yield running


@pytest.fixture
def cluster(shared_cluster: EmbeddedCluster) -> Iterator[EmbeddedCluster]:
    """The shared cluster; what a test leaves unfinished on it is killed after the test."""
    yield shared_cluster
    with shared_cluster.client() as client:
        unfinished = [each for each in client.list_experiments() if not each.state.is_terminal]
        for experiment in unfinished:
            # It may end by itself, or be cancelled by what the test began.
            with suppress(IllegalTransitionError):
                experiment.kill()
        for experiment in unfinished:
            experiment.wait()
