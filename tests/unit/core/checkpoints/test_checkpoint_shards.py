"""Checkpoints that several processes write and read together."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.training.ranks.threads import rank_outcomes, rank_results, written

from resolute.core import CheckpointContext, DistributedContext, DownloadMode, DummyCheckpointContext
from resolute.core.checkpoint.files.manifest import list_directory
from resolute.core.checkpoint.registry import LocalRegistry
from resolute.core.checkpoint.stores.directory import DirectoryStore
from resolute.trial_errors import CheckpointNotFound


class DistantStore(DirectoryStore):
    """A store whose files must be copied, as those of a bucket."""

    def in_place(self, checkpoint_id: str) -> Path | None:
        return None


@pytest.fixture(params=[DirectoryStore, DistantStore])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> DirectoryStore:
    made: DirectoryStore = request.param(tmp_path / "store")
    return made


def write(directory: Path, **files: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name).write_text(content)
    return directory


def test_every_rank_brings_its_part(store: DirectoryStore, tmp_path: Path) -> None:
    def work(dist: DistributedContext) -> str:
        source = write(tmp_path / f"rank{dist.rank}", **{f"shard{dist.rank}": str(dist.rank)})
        context = DummyCheckpointContext(dist, store)
        return context.upload(source, {"steps_completed": 1, f"rank{dist.rank}": True}, shard=True)

    checkpoints = rank_results(3, work)

    assert len(set(checkpoints)) == 1
    assert set(store.list(checkpoints[0])) == {"shard0", "shard1", "shard2", "metadata.json"}
    metadata = json.loads((store._path(checkpoints[0]) / "metadata.json").read_text())
    assert metadata == {"steps_completed": 1, "rank0": True, "rank1": True, "rank2": True}


def test_some_ranks_may_bring_nothing(store: DirectoryStore, tmp_path: Path) -> None:
    def work(dist: DistributedContext) -> str:
        source = write(tmp_path / "one", weights="w") if dist.rank == 1 else None
        return DummyCheckpointContext(dist, store).upload(source, shard=True)

    checkpoint = rank_results(2, work)[0]
    assert set(store.list(checkpoint)) == {"weights", "metadata.json"}
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["weights"]


def test_someone_must_bring_something(store: DirectoryStore) -> None:
    def work(dist: DistributedContext) -> str:
        return DummyCheckpointContext(dist, store).upload(None, shard=True)

    for outcome in rank_outcomes(2, work):
        with pytest.raises(RuntimeError, match="at least one must have a directory"):
            raise outcome


def test_a_selector_needs_a_directory(store: DirectoryStore, tmp_path: Path) -> None:
    def work(dist: DistributedContext) -> str:
        source = write(tmp_path / "one", weights="w") if dist.rank else None
        return DummyCheckpointContext(dist, store).upload(source, shard=True, selector=lambda _: True)

    without, with_directory = rank_outcomes(2, work)
    with pytest.raises(RuntimeError, match="with a selector but without a ckpt_dir"):
        raise without
    with pytest.raises(RuntimeError, match=r"another process failed: rank 0: RuntimeError"):
        raise with_directory


def test_a_directory_that_ranks_share_is_uploaded_once(store: DirectoryStore, tmp_path: Path) -> None:
    shared = write(tmp_path / "shared", weights="w", other="o")

    def work(dist: DistributedContext) -> str:
        return DummyCheckpointContext(dist, store).upload(shared, {"steps_completed": 1}, shard=True)

    checkpoint = rank_results(2, work)[0]
    assert set(store.list(checkpoint)) == {"weights", "other", "metadata.json"}


def test_ranks_that_share_a_directory_may_select_from_it(store: DirectoryStore, tmp_path: Path) -> None:
    shared = write(tmp_path / "shared", file0="0", file1="1", file2="2")

    def work(dist: DistributedContext) -> str:
        return DummyCheckpointContext(dist, store).upload(
            shared, shard=True, selector=lambda path: path == f"file{dist.rank}"
        )

    checkpoint = rank_results(2, work)[0]
    assert set(store.list(checkpoint)) == {"file0", "file1", "metadata.json"}


def test_equal_files_of_several_ranks_are_one(store: DirectoryStore, tmp_path: Path) -> None:
    def work(dist: DistributedContext) -> str:
        source = write(tmp_path / f"rank{dist.rank}", same="equal", **{f"own{dist.rank}": "x"})
        return DummyCheckpointContext(dist, store).upload(source, shard=True)

    checkpoint = rank_results(2, work, local_size=1)[0]
    assert set(store.list(checkpoint)) == {"same", "own0", "own1", "metadata.json"}


def test_different_files_of_one_name_are_refused_everywhere(store: DirectoryStore, tmp_path: Path) -> None:
    def work(dist: DistributedContext) -> str:
        source = write(tmp_path / f"rank{dist.rank}", same=f"of {dist.rank}")
        return DummyCheckpointContext(dist, store).upload(source, shard=True)

    for outcome in rank_outcomes(2, work):
        with pytest.raises(RuntimeError, match="refusing to upload with files conflicts: same on ranks 0, 1"):
            raise outcome
    assert not list((tmp_path / "store").glob("[!.]*"))


def test_different_metadata_are_refused_everywhere(store: DirectoryStore, tmp_path: Path) -> None:
    def work(dist: DistributedContext) -> str:
        source = write(tmp_path / f"rank{dist.rank}", **{f"own{dist.rank}": "x"})
        return DummyCheckpointContext(dist, store).upload(source, {"a": {"b": dist.rank}}, shard=True)

    for outcome in rank_outcomes(2, work):
        with pytest.raises(RuntimeError, match="metadata conflicts: /a/b on ranks 0, 1"):
            raise outcome


def test_workers_do_not_upload_alone(store: DirectoryStore, tmp_path: Path) -> None:
    def work(dist: DistributedContext) -> tuple[str, str]:
        context = DummyCheckpointContext(dist, store)
        if dist.rank == 0:
            return "", ""
        with pytest.raises(RuntimeError) as upload:
            context.upload(tmp_path)
        with pytest.raises(RuntimeError) as stored, context.store_path():
            pass
        return str(upload.value), str(stored.value)

    upload, stored = rank_results(2, work)[1]
    assert "upload(shard=False) from non-chief" in upload
    assert "store_path(shard=False) from non-chief" in stored


def test_all_ranks_write_to_a_stored_path(store: DirectoryStore) -> None:
    all_wrote = written(3)

    def work(dist: DistributedContext) -> str:
        context = DummyCheckpointContext(dist, store)
        with context.store_path({"steps_completed": 1}, shard=True) as (path, checkpoint):
            (path / f"shard{dist.rank}").write_text("x")
            all_wrote()
        return checkpoint

    checkpoints = rank_results(3, work)
    assert len(set(checkpoints)) == 1
    assert set(store.list(checkpoints[0])) == {"shard0", "shard1", "shard2", "metadata.json"}


def test_a_failure_of_one_rank_is_a_failure_of_all(store: DirectoryStore, tmp_path: Path) -> None:
    all_wrote = written(2)

    def work(dist: DistributedContext) -> None:
        context = DummyCheckpointContext(dist, store)
        with context.store_path({"steps_completed": 1}, shard=True) as (path, _):
            (path / f"shard{dist.rank}").write_text("x")
            all_wrote()
            if dist.rank == 1:
                raise KeyError("of the script")

    chief, failed = rank_outcomes(2, work)
    assert isinstance(failed, KeyError)
    with pytest.raises(RuntimeError, match="rank 1: KeyError: 'of the script'"):
        raise chief
    assert not list((tmp_path / "store").glob("[!.]*"))


def test_every_rank_waits_for_its_own_reports(store: DirectoryStore, tmp_path: Path) -> None:
    flushed: list[int] = []

    def work(dist: DistributedContext) -> str:
        source = write(tmp_path / f"rank{dist.rank}", **{f"own{dist.rank}": "x"})
        context = CheckpointContext(
            dist, store=store, registry=LocalRegistry(store), flush=lambda: flushed.append(dist.rank)
        )
        return context.upload(source, {"steps_completed": 1}, shard=True)

    rank_results(2, work)
    assert set(flushed) == {0, 1}


def test_one_process_of_each_machine_downloads_what_any_of_them_wants(
    store: DirectoryStore, tmp_path: Path
) -> None:
    source = write(tmp_path / "model", **{f"file{i}": "x" for i in range(4)})

    def work(dist: DistributedContext) -> list[str]:
        context = DummyCheckpointContext(dist, store)
        checkpoint = dist.broadcast(context.upload(source) if dist.rank == 0 else None)
        target = tmp_path / f"machine{dist.cross_rank}"
        context.download(checkpoint, target, selector=lambda path: path == f"file{dist.rank}")
        return sorted(list_directory(target))

    assert rank_results(4, work, local_size=2) == [
        ["file0", "file1"],
        ["file0", "file1"],
        ["file2", "file3"],
        ["file2", "file3"],
    ]


def test_each_process_can_download_for_itself(store: DirectoryStore, tmp_path: Path) -> None:
    source = write(tmp_path / "model", file0="x", file1="x")

    def work(dist: DistributedContext) -> list[str]:
        context = DummyCheckpointContext(dist, store)
        checkpoint = dist.broadcast(context.upload(source) if dist.rank == 0 else None)
        target = tmp_path / f"rank{dist.rank}"
        context.download(
            checkpoint,
            target,
            DownloadMode.NoSharedDownload,
            selector=lambda path: path == f"file{dist.rank}",
        )
        return sorted(list_directory(target))

    assert rank_results(2, work) == [["file0"], ["file1"]]


def test_restored_files_stay_until_the_last_process_is_done(store: DirectoryStore, tmp_path: Path) -> None:
    source = write(tmp_path / "model", weights="x")

    def work(dist: DistributedContext) -> tuple[Path, bool]:
        context = DummyCheckpointContext(dist, store)
        checkpoint = dist.broadcast(context.upload(source) if dist.rank == 0 else None)
        with context.restore_path(checkpoint) as path:
            # Rank 0 would leave first and could take the files away.
            if dist.rank == 1:
                dist.broadcast_local()
                return path, (path / "weights").exists()
            dist.broadcast_local("go on")
        return path, True

    (path, _), (same, there) = rank_results(2, work)
    assert path == same
    assert there


def test_a_checkpoint_that_is_not_there_is_not_found_on_every_rank(
    store: DirectoryStore, tmp_path: Path
) -> None:
    def work(dist: DistributedContext) -> Any:
        DummyCheckpointContext(dist, store).download("unknown", tmp_path / "back")

    chief, worker = rank_outcomes(2, work)
    assert isinstance(chief, CheckpointNotFound)
    with pytest.raises(RuntimeError, match="rank 0: CheckpointNotFound"):
        raise worker
