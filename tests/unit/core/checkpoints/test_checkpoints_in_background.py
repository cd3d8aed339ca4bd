"""Checkpoints that are committed while the script continues."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.training.ranks.threads import rank_results

from resolute import core
from resolute.core.checkpoint import CheckpointContext
from resolute.core.checkpoint.registry import LocalRegistry
from resolute.core.checkpoint.stores.directory import DirectoryStore
from resolute.core.distributed import DummyDistributedContext
from resolute.errors import RunSupersededError

DEADLINE = 30.0


class DistantStore(DirectoryStore):
    """A store whose files must be copied, as those of a bucket."""

    def in_place(self, checkpoint_id: str) -> Path | None:
        return None


class Registry(LocalRegistry):
    """Remembers what was committed, with which metadata."""

    def __init__(self, store: DirectoryStore) -> None:
        super().__init__(store)
        self.committed: dict[str, dict[str, Any]] = {}
        self.refuses = False

    def commit(self, checkpoint_id: str, *, files: Any, metadata: Any) -> None:
        if self.refuses:
            raise RunSupersededError("run 1 is over")
        super().commit(checkpoint_id, files=files, metadata=metadata)
        self.committed[checkpoint_id] = dict(metadata)


@dataclass
class World:
    """A context whose commits wait until the reports before them are let through."""

    base: Path
    store: DirectoryStore
    reports: threading.Event = field(default_factory=threading.Event)
    threads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.registry = Registry(self.store)
        self.context = CheckpointContext(
            DummyDistributedContext(),
            store=self.store,
            registry=self.registry,
            flush=self._flush,
        )

    def _flush(self) -> None:
        self.threads.append(threading.current_thread().name)
        assert self.reports.wait(DEADLINE)


@pytest.fixture(params=[DirectoryStore, DistantStore])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "store", request.param(tmp_path / "store"))
    yield world
    world.reports.set()
    world.context.wait()


def store(world: World, metadata: dict[str, Any], data: bytes = b"weights") -> str:
    with world.context.store_path(metadata, background=True) as (path, checkpoint_id):
        (path / "model").write_bytes(data)
    return checkpoint_id


def test_the_script_goes_on_before_the_commit_and_waits_for_it_at_the_end(world: World) -> None:
    metadata = {"steps_completed": 1, "history": [1]}
    checkpoint_id = store(world, metadata)
    metadata["history"] = [2]
    assert world.registry.committed == {}
    world.reports.set()
    world.context.wait()
    assert world.registry.committed[checkpoint_id]["history"] == [1]
    assert (world.base / checkpoint_id / "model").read_bytes() == b"weights"
    assert world.threads == ["resolute-checkpoint-background"]


def uses(world: World, checkpoint_id: str, tmp_path: Path) -> list[Callable[[], object]]:
    def restore() -> None:
        with world.context.restore_path(checkpoint_id) as path:
            assert (path / "model").read_bytes() == b"weights"

    return [
        restore,
        lambda: world.context.download(checkpoint_id, tmp_path / "copy"),
        lambda: world.context.delete(checkpoint_id),
        lambda: store(world, {"steps_completed": 2}),
        lambda: world.context.upload(tmp_path / "source", {"steps_completed": 2}),
    ]


@pytest.mark.parametrize("number", range(5))
def test_whatever_comes_next_waits_for_the_one_under_way(world: World, tmp_path: Path, number: int) -> None:
    (tmp_path / "source").mkdir()
    checkpoint_id = store(world, {"steps_completed": 1})
    ended = threading.Event()
    use = uses(world, checkpoint_id, tmp_path)[number]

    def script() -> None:
        use()
        ended.set()

    thread = threading.Thread(target=script, name="script")
    thread.start()
    assert not ended.is_set()
    assert world.registry.committed == {}
    world.reports.set()
    thread.join(DEADLINE)
    assert ended.is_set()
    assert checkpoint_id in world.registry.committed


def test_a_directory_may_be_changed_as_soon_as_upload_returns(world: World, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep" / "empty").mkdir(parents=True)
    (source / "deep" / "model").write_bytes(b"one")
    (source / "skipped").write_bytes(b"no")
    checkpoint_id = world.context.upload(
        source, {"steps_completed": 1}, selector=lambda path: path != "skipped", background=True
    )
    (source / "deep" / "model").write_bytes(b"two")
    world.reports.set()
    world.context.download(checkpoint_id, tmp_path / "copy")
    assert (tmp_path / "copy" / "deep" / "model").read_bytes() == b"one"
    assert (tmp_path / "copy" / "deep" / "empty").is_dir()
    assert not (tmp_path / "copy" / "skipped").exists()


def test_a_failure_is_raised_once_by_what_comes_next_and_nothing_is_left(world: World) -> None:
    world.registry.refuses = True
    world.reports.set()
    checkpoint_id = store(world, {"steps_completed": 1})
    with pytest.raises(RunSupersededError):
        store(world, {"steps_completed": 2})
    world.context.wait()
    assert not (world.base / checkpoint_id).exists()


def test_a_block_that_fails_hands_nothing_over(world: World) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        world.context.store_path({"steps_completed": 1}, background=True) as (_, checkpoint_id),
    ):
        raise ZeroDivisionError
    world.context.wait()
    assert world.threads == []
    assert not (world.base / checkpoint_id).exists()


def test_the_end_of_a_context_waits_and_raises(tmp_path: Path) -> None:
    with (
        core.init(checkpoint_storage=str(tmp_path / "store")) as context,
        context.checkpoint.store_path({"steps_completed": 1}, background=True) as (path, checkpoint_id),
    ):
        (path / "model").write_bytes(b"weights")
    assert (tmp_path / "store" / checkpoint_id / "metadata.json").exists()


def test_shards_of_several_ranks_do_not_go_in_the_background(tmp_path: Path) -> None:
    def work(dist: core.DistributedContext) -> None:
        target = DirectoryStore(tmp_path / "store")
        context = CheckpointContext(dist, store=target, registry=LocalRegistry(target))
        with (
            pytest.raises(ValueError, match="checkpoint of 2 ranks cannot be written in the background"),
            context.store_path({"steps_completed": 1}, shard=True, background=True),
        ):
            pass

    rank_results(2, work)
