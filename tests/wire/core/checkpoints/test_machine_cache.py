"""What a machine keeps of the checkpoints that were restored on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.clusters.trial_cluster import Trial
from support.object_stores.proxy import Disturbance, StoreProxy, store_proxy
from support.object_stores.s3 import S3Server
from support.training.ranks.threads import rank_results

from resolute import core
from resolute.core import DistributedContext, DownloadMode
from resolute.errors import UnavailableError
from resolute.transfer.cache import DIRECTORY_VARIABLE, LIMIT_VARIABLE

CONTENT = {"a": b"a" * 50_000, "d/b": b"b" * 50_000}


@pytest.fixture
def proxy(server: S3Server) -> Iterator[StoreProxy]:
    with store_proxy(server) as running:
        yield running


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def storage(bucket_trial: Trial, server: S3Server, proxy: StoreProxy) -> dict[str, str]:
    return {"type": "s3", "bucket": server.new_bucket(), "endpoint_url": proxy.server.endpoint_url}


def store(context: Any) -> str:
    with context.checkpoint.store_path({"steps_completed": 1}) as (path, checkpoint_id):
        (path / "d").mkdir()
        for name, data in CONTENT.items():
            (path / name).write_bytes(data)
    return str(checkpoint_id)


def is_whole(context: Any, checkpoint_id: str) -> bool:
    with context.checkpoint.restore_path(checkpoint_id) as path:
        return all((path / name).read_bytes() == data for name, data in CONTENT.items())


def fetched(proxy: StoreProxy, name: str) -> int:
    return sum(path.endswith(name) for path in proxy.object_names("GET"))


def test_what_was_restored_once_needs_no_store(
    storage: dict[str, str], proxy: StoreProxy, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with core.init(checkpoint_storage=storage) as context:
        checkpoint_id = store(context)
        assert is_whole(context, checkpoint_id)
        proxy.behaviour = lambda _: Disturbance(status=500)
        assert is_whole(context, checkpoint_id)
        assert [fetched(proxy, name) for name in ("/a", "d/b", "metadata.json")] == [1, 1, 1]
    monkeypatch.delenv(DIRECTORY_VARIABLE)
    monkeypatch.setenv("RESOLUTE_PATIENCE_SECONDS", "1")
    with core.init(checkpoint_storage=storage) as context, pytest.raises(UnavailableError):
        is_whole(context, checkpoint_id)


def test_a_damaged_file_of_the_machine_is_fetched_again_and_no_other(
    storage: dict[str, str], proxy: StoreProxy, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with core.init(checkpoint_storage=storage) as context:
        checkpoint_id = store(context)
        assert is_whole(context, checkpoint_id)
        (largest,) = [path for path in cache.glob("??/*") if path.read_bytes() == CONTENT["a"]]
        largest.write_bytes(b"A" + CONTENT["a"][1:])
        assert is_whole(context, checkpoint_id)
        assert (fetched(proxy, "/a"), fetched(proxy, "d/b")) == (2, 1)
        assert "is damaged: it is fetched again" in caplog.text
        assert is_whole(context, checkpoint_id)
        assert fetched(proxy, "/a") == 2


def test_processes_of_a_machine_that_want_the_same_fetch_it_once(
    storage: dict[str, str], proxy: StoreProxy, cache: Path, tmp_path: Path
) -> None:
    with core.init(checkpoint_storage=storage) as context:
        checkpoint_id = store(context)
    proxy.behaviour = lambda _: Disturbance(pace=500_000)

    def work(dist: DistributedContext) -> None:
        target = tmp_path / f"rank{dist.rank}"
        with core.init(distributed=dist, checkpoint_storage=storage) as context:
            context.checkpoint.download(checkpoint_id, target, DownloadMode.NoSharedDownload)
        assert all((target / name).read_bytes() == data for name, data in CONTENT.items())

    rank_results(4, work)
    assert (fetched(proxy, "/a"), fetched(proxy, "d/b")) == (1, 1)


def test_a_checkpoint_beyond_the_bound_passes_the_cache_by(
    storage: dict[str, str], proxy: StoreProxy, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "60000")
    with core.init(checkpoint_storage=storage) as context:
        checkpoint_id = store(context)
        assert is_whole(context, checkpoint_id)
        assert is_whole(context, checkpoint_id)
    assert fetched(proxy, "/a") == 2
    assert not cache.exists()
