"""Commits and removals off cluster that go wrong half-way: a checkpoint is whole, or it is none."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.file_systems import small_file_system
from support.object_stores.proxy import FINE, Disturbance, ProxyRequest, StoreProxy
from support.training.ranks.threads import rank_outcomes, written

from resolute.contracts.object_stores.factory import open_bucket
from resolute.contracts.object_stores.location import BucketStorage
from resolute.core import DistributedContext, DummyCheckpointContext
from resolute.core.checkpoint.stores.base import RecordKeepingStore
from resolute.core.checkpoint.stores.bucket import BucketStore
from resolute.core.checkpoint.stores.directory import DirectoryStore
from resolute.core.distributed import CollectiveError
from resolute.errors import FailedPreconditionError, UnavailableError
from resolute.trial_errors import CheckpointNotFound

CONTENT = {"model": b"weights" * 1000, "d/optimizer": b"state"}
STEPS = {"steps_completed": 3}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    for path, data in CONTENT.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes(data)
    return source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def bucket(proxy: StoreProxy) -> BucketStore:
    """A bucket behind a proxy, whose absence is not waited for."""
    storage = BucketStorage(
        "s3",
        proxy.server.new_bucket(),
        endpoint_url=proxy.server.endpoint_url,
        access_key=proxy.server.access_key,
        secret_key=proxy.server.secret_key,
    )
    return BucketStore(open_bucket(storage), outage_timeout=0.0)


@contextmanager
def held(directory: Path, away: Path) -> Iterator[None]:
    """Has a file in a directory that even root cannot remove: something is mounted on it."""
    with small_file_system(away, "64k"):
        (directory / "mounted").mkdir()
        subprocess.run(["mount", "--bind", str(away), str(directory / "mounted")], check=True)
        try:
            yield
        finally:
            subprocess.run(["umount", str(directory / "mounted")], check=True)


def alone(store: RecordKeepingStore) -> DummyCheckpointContext:
    return DummyCheckpointContext(DistributedContext(), store)


def is_whole(store: RecordKeepingStore, checkpoint_id: str, target: Path) -> bool:
    """Whether a checkpoint counts; if so, every byte of it must be there."""
    try:
        alone(store).download(checkpoint_id, target)
    except CheckpointNotFound:
        return False
    return {path: (target / path).read_bytes() for path in CONTENT} == CONTENT


def identifiers(folder: Path) -> list[str]:
    return [path.stem for path in (folder / ".records").iterdir()]


def test_a_commit_whose_answer_is_lost_is_not_taken_back(
    bucket: BucketStore, proxy: StoreProxy, source: Path, tmp_path: Path
) -> None:
    def mood(asked: ProxyRequest) -> Disturbance:
        begun = [name for name in proxy.object_names("PUT") if "/.records/" in name]
        late = asked.method == "PUT" and "/.records/" in asked.path and len(begun) > 1
        return Disturbance(cut=True) if late else FINE

    proxy.behaviour = mood
    with pytest.raises(UnavailableError, match="does not answer"):
        alone(bucket).upload(source, STEPS)
    proxy.behaviour = lambda _: FINE
    record = next(name for name in proxy.object_names("PUT") if "/.records/" in name)
    assert is_whole(bucket, Path(record).stem, tmp_path / "back")


def test_a_store_that_goes_away_at_the_commit_leaves_nothing_that_counts(
    bucket: BucketStore, proxy: StoreProxy, source: Path, tmp_path: Path
) -> None:
    def mood(asked: ProxyRequest) -> Disturbance:
        return Disturbance(status=503) if "metadata.json" in "".join(proxy.object_names("PUT")[:-1]) else FINE

    proxy.behaviour = mood
    with pytest.raises(UnavailableError):
        alone(bucket).upload(source, STEPS)
    proxy.behaviour = lambda _: FINE
    record = next(name for name in proxy.object_names("PUT") if "/.records/" in name)
    assert not is_whole(bucket, Path(record).stem, tmp_path / "back")
    alone(bucket).delete(Path(record).stem)
    assert list(bucket.list(Path(record).stem)) == []


@pytest.mark.parametrize("failure", [OSError("fsync failed"), KeyboardInterrupt()])
def test_a_failure_right_after_the_commit_takes_nothing_back(
    folder: Path, source: Path, tmp_path: Path, failure: BaseException
) -> None:
    class Failing(DirectoryStore):
        def write_record(self, checkpoint_id: str, content: bytes) -> None:
            super().write_record(checkpoint_id, content)
            if b'"finished": true' in content:
                raise failure

    with pytest.raises(type(failure)):
        alone(Failing(folder)).upload(source, STEPS)
    (checkpoint_id,) = identifiers(folder)
    assert is_whole(DirectoryStore(folder), checkpoint_id, tmp_path / "back")


@pytest.mark.parametrize("in_place", [True, False])
def test_a_rank_that_dies_after_the_commit_takes_nothing_back(
    folder: Path, source: Path, tmp_path: Path, in_place: bool
) -> None:
    def dying(dist: DistributedContext, exchanges: int) -> Callable[[object], Sequence[object]]:
        exchange, left = dist.allgather, exchanges

        def allgather(stuff: object) -> Sequence[object]:
            nonlocal left
            left -= 1
            if not left:
                raise KeyError("the rank is killed")
            return exchange(stuff)

        return allgather

    all_wrote = written(2)

    def work(dist: DistributedContext) -> None:
        checkpoint = DummyCheckpointContext(dist, DirectoryStore(folder))
        if dist.rank:
            # The exchange that ends the chief's commit is the last one.
            dist.allgather = dying(dist, 3 if in_place else 5)  # type: ignore[assignment,method-assign]
        if not in_place:
            checkpoint.upload(source, STEPS, shard=True)
            return
        with checkpoint.store_path(STEPS, shard=True) as (path, _):
            if dist.rank == 0:
                for name, data in CONTENT.items():
                    (path / name).parent.mkdir(exist_ok=True)
                    (path / name).write_bytes(data)
            all_wrote()

    chief, killed = rank_outcomes(2, work)
    assert isinstance(chief, CollectiveError), chief
    assert isinstance(killed, KeyError)
    (checkpoint_id,) = identifiers(folder)
    assert is_whole(DirectoryStore(folder), checkpoint_id, tmp_path / "back")


def test_what_cannot_be_removed_counts_no_more_and_can_be_removed_later(
    folder: Path, source: Path, tmp_path: Path
) -> None:
    store = DirectoryStore(folder)
    checkpoint_id = alone(store).upload(source, STEPS)
    with held(folder / checkpoint_id, tmp_path / "away"):
        with pytest.raises(FailedPreconditionError, match=r"can be removed \(.*busy.*call delete\(\) again"):
            alone(store).delete(checkpoint_id)
        assert (folder / checkpoint_id).exists()
        assert not is_whole(store, checkpoint_id, tmp_path / "back")
    alone(store).delete(checkpoint_id)
    assert not (folder / checkpoint_id).exists()
    assert identifiers(folder) == []


def test_a_copied_directory_that_cannot_be_removed_whole_counts_no_more(
    folder: Path, source: Path, tmp_path: Path
) -> None:
    store = DirectoryStore(folder)
    folder.mkdir()
    source.rename(folder / "copied")
    assert is_whole(store, "copied", tmp_path / "before")
    with held(folder / "copied", tmp_path / "away"):
        with pytest.raises(FailedPreconditionError, match="not all files of checkpoint copied"):
            alone(store).delete("copied")
        assert not is_whole(store, "copied", tmp_path / "back")


def test_a_failed_writer_leaves_what_it_cannot_remove_unfinished(folder: Path, tmp_path: Path) -> None:
    store = DirectoryStore(folder)
    block = alone(store).store_path(STEPS)
    path, checkpoint_id = block.__enter__()
    (path / "model").write_bytes(b"half")
    with held(path, tmp_path / "away"):
        assert not block.__exit__(KeyError, KeyError("of the script"), None)
        assert identifiers(folder) == [checkpoint_id]
        assert not is_whole(store, checkpoint_id, tmp_path / "back")


def test_files_that_another_process_removes_meanwhile_are_no_failure(
    folder: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DirectoryStore(folder)
    checkpoint_id = alone(store).upload(source, STEPS)
    unlink = os.unlink

    def overtaken(*arguments: Any, **options: Any) -> None:
        monkeypatch.setattr(os, "unlink", unlink)
        unlink(*arguments, **options)
        unlink(*arguments, **options)

    monkeypatch.setattr(os, "unlink", overtaken)
    alone(store).delete(checkpoint_id)
    assert not (folder / checkpoint_id).exists()
