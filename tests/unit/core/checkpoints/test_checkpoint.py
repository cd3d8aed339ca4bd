"""Checkpoints of one process."""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resolute.contracts.files.digests import format_digest, new_hash
from resolute.core import CheckpointContext, DownloadMode, DummyCheckpointContext, DummyDistributedContext
from resolute.core.checkpoint.files.manifest import FileEntry, list_directory
from resolute.core.checkpoint.files.progress_log import watch_progress
from resolute.core.checkpoint.registry import RegisteredCheckpoint
from resolute.core.checkpoint.stores.base import CheckpointStore
from resolute.core.checkpoint.stores.directory import DirectoryStore
from resolute.errors import DataLossError, InvalidArgumentError
from resolute.trial_errors import CheckpointNotFound


class Registry:
    """Registers checkpoints in memory, by the rules of the service."""

    def __init__(self, store: CheckpointStore) -> None:
        self.store = store
        self.begun: set[str] = set()
        self.committed: dict[str, tuple[tuple[FileEntry, ...], dict[str, Any]]] = {}
        self.log: list[str] = []

    def prepare(self, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
        if "steps_completed" not in (metadata or {}):
            raise ValueError("metadata of a checkpoint must contain 'steps_completed'")
        return dict(metadata or {})

    def begin(self, checkpoint_id: str) -> None:
        self.log.append("begin")
        self.begun.add(checkpoint_id)

    def commit(self, checkpoint_id: str, *, files: Sequence[FileEntry], metadata: Mapping[str, Any]) -> None:
        assert checkpoint_id in self.begun
        present = self.store.list(checkpoint_id)
        assert {file.path: file.size for file in files}.items() <= present.items()
        self.log.append("commit")
        self.committed[checkpoint_id] = (tuple(files), dict(metadata))

    def abort(self, checkpoint_id: str) -> None:
        self.log.append("abort")
        assert checkpoint_id not in self.committed
        self.store.delete(checkpoint_id)

    def hold(self, checkpoint_id: str) -> None:
        """No policy deletes here."""

    def find(self, checkpoint_id: str) -> RegisteredCheckpoint:
        if checkpoint_id not in self.committed:
            raise CheckpointNotFound(f"there is no checkpoint {checkpoint_id}")
        return RegisteredCheckpoint(self.store, self.committed[checkpoint_id][0])

    def metadata(self, checkpoint_id: str) -> dict[str, Any]:
        return self.committed[checkpoint_id][1]

    def delete(self, checkpoint_id: str) -> None:
        self.store.delete(checkpoint_id)
        self.committed.pop(checkpoint_id, None)


class DistantStore(DirectoryStore):
    """A store whose files must be copied, as those of a bucket."""

    def in_place(self, checkpoint_id: str) -> Path | None:
        return None

    def delete(self, checkpoint_id: str) -> None:
        shutil.rmtree(self._path(checkpoint_id), ignore_errors=True)

    def write(self, checkpoint_id: str, source: Path, paths: Iterable[str]) -> list[FileEntry]:
        return super().write(checkpoint_id, source, paths)


class World:
    """A context with its store and registry."""

    def __init__(self, store: CheckpointStore) -> None:
        self.registry = Registry(store)
        self.context = CheckpointContext(
            DummyDistributedContext(),
            store=store,
            registry=self.registry,
            flush=lambda: self.registry.log.append("flush"),
            committed=lambda: self.registry.log.append("committed"),
        )


@pytest.fixture(params=[DirectoryStore, DistantStore])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(request.param(tmp_path / "store"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    (directory / "layers" / "empty").mkdir(parents=True)
    (directory / "weights.bin").write_bytes(b"\x00\x01" * 5000)
    (directory / "layers" / "first.bin").write_bytes(b"first")
    return directory


STEPS = {"steps_completed": 5, "framework": "none"}


def test_an_uploaded_directory_comes_back(world: World, model: Path, tmp_path: Path) -> None:
    checkpoint = world.context.upload(model, STEPS)
    world.context.download(checkpoint, tmp_path / "back")

    back = list_directory(tmp_path / "back")
    assert back.pop("metadata.json")
    assert back == list_directory(model)
    assert (tmp_path / "back" / "weights.bin").read_bytes() == (model / "weights.bin").read_bytes()
    assert json.loads((tmp_path / "back" / "metadata.json").read_text()) == STEPS
    assert world.context.get_metadata(checkpoint) == STEPS


def test_the_manifest_has_sizes_and_digests(world: World, model: Path) -> None:
    checkpoint = world.context.upload(model, STEPS)
    files = {file.path: file for file in world.registry.committed[checkpoint][0]}
    assert set(files) == {"layers/", "layers/empty/", "layers/first.bin", "weights.bin", "metadata.json"}
    assert files["layers/first.bin"].size == 5
    summed = new_hash()
    summed.update((model / "layers/first.bin").read_bytes())
    assert files["layers/first.bin"].digest == format_digest(summed)
    assert files["layers/empty/"] == FileEntry("layers/empty/", 0, "")


def test_a_checkpoint_counts_after_its_files_and_its_reports_are_safe(world: World, model: Path) -> None:
    world.context.upload(model, STEPS)
    assert world.registry.log == ["begin", "flush", "commit", "committed"]


def test_a_selector_chooses_files(world: World, model: Path, tmp_path: Path) -> None:
    checkpoint = world.context.upload(model, STEPS, selector=lambda path: path.startswith("layers"))
    world.context.download(checkpoint, tmp_path / "back")
    assert set(list_directory(tmp_path / "back")) == {
        "layers/",
        "layers/empty/",
        "layers/first.bin",
        "metadata.json",
    }

    world.context.download(checkpoint, tmp_path / "part", selector=lambda path: path.endswith("first.bin"))
    assert set(list_directory(tmp_path / "part")) == {"layers/", "layers/first.bin"}


def test_steps_are_needed_before_anything_is_written(world: World, model: Path) -> None:
    with pytest.raises(ValueError, match="must contain 'steps_completed'"):
        world.context.upload(model, {"other": 1})
    with pytest.raises(ValueError, match="must contain 'steps_completed'"), world.context.store_path():
        pass
    assert world.registry.log == []


def test_a_directory_is_needed(world: World) -> None:
    with pytest.raises(RuntimeError, match="there must be a directory"):
        world.context.upload(None, STEPS)


def test_a_missing_directory_is_named(world: World, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        world.context.upload(tmp_path / "nowhere", STEPS)
    assert world.registry.log == []


def test_a_stored_path_becomes_a_checkpoint(world: World) -> None:
    with world.context.store_path(STEPS) as (path, checkpoint):
        (path / "state.txt").write_text("42")
        assert checkpoint not in world.registry.committed
    with world.context.restore_path(checkpoint) as restored:
        assert (restored / "state.txt").read_text() == "42"
        assert json.loads((restored / "metadata.json").read_text()) == STEPS
    assert world.registry.log == ["begin", "flush", "commit", "committed"]


def test_a_stored_path_that_fails_leaves_nothing(world: World) -> None:
    with pytest.raises(KeyError), world.context.store_path(STEPS) as (path, checkpoint):
        _fail_after_writing(path)
    assert world.registry.log == ["begin", "abort"]
    with pytest.raises(CheckpointNotFound):
        world.registry.store.list(checkpoint)
    assert not path.exists()


def _fail_after_writing(path: Path) -> None:
    (path / "state.txt").write_text("42")
    raise KeyError("of the script")


def test_a_failed_commit_leaves_nothing(world: World, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(world.registry, "commit", fail)
    with pytest.raises(OSError, match="no space left"):
        world.context.upload(model, STEPS)
    assert world.registry.log == ["begin", "flush", "abort"]


def test_a_damaged_file_is_found_when_it_is_restored(world: World, model: Path, tmp_path: Path) -> None:
    checkpoint = world.context.upload(model, STEPS)
    store = world.registry.store
    assert isinstance(store, DirectoryStore)
    weights = store._path(checkpoint) / "weights.bin"
    weights.write_bytes(b"\x00\x02" * 5000)
    (store._path(checkpoint) / "layers" / "first.bin").write_bytes(b"fir")

    with (
        pytest.raises(DataLossError, match=r"weights\.bin has another content"),
        world.context.restore_path(checkpoint),
    ):
        pass
    with pytest.raises(DataLossError, match=r"layers/first\.bin has 3 bytes instead of 5"):
        world.context.download(checkpoint, tmp_path / "back")


def test_a_missing_file_is_found_when_it_is_restored(world: World, model: Path, tmp_path: Path) -> None:
    checkpoint = world.context.upload(model, STEPS)
    store = world.registry.store
    assert isinstance(store, DirectoryStore)
    (store._path(checkpoint) / "weights.bin").unlink()
    with (
        pytest.raises((DataLossError, CheckpointNotFound), match=r"weights\.bin"),
        world.context.restore_path(checkpoint),
    ):
        pass


def test_an_unknown_checkpoint_is_not_found(world: World, tmp_path: Path) -> None:
    with pytest.raises(CheckpointNotFound), world.context.restore_path("0000"):
        pass
    with pytest.raises(CheckpointNotFound):
        world.context.download("0000", tmp_path / "back", DownloadMode.NoSharedDownload)


def test_a_manifest_cannot_reach_outside(world: World, model: Path, tmp_path: Path) -> None:
    checkpoint = world.context.upload(model, STEPS)
    world.registry.committed[checkpoint] = ((FileEntry("../evil", 1, ""),), {})
    with pytest.raises(DataLossError, match="outside of itself"):
        world.context.download(checkpoint, tmp_path / "back")


@pytest.mark.parametrize("name", ["..", "a/b", "", "."])
def test_an_identifier_cannot_reach_outside(tmp_path: Path, name: str) -> None:
    context = DummyCheckpointContext(DummyDistributedContext(), DirectoryStore(tmp_path / "store"))
    with pytest.raises(InvalidArgumentError, match="not an identifier of a checkpoint"):
        context.delete(name)


def test_a_deleted_checkpoint_is_gone(world: World, model: Path) -> None:
    checkpoint = world.context.upload(model, STEPS)
    world.context.delete(checkpoint)
    world.context.delete(checkpoint)
    with pytest.raises(CheckpointNotFound), world.context.restore_path(checkpoint):
        pass


def test_files_are_restored_where_they_lie_if_they_can_be(tmp_path: Path, model: Path) -> None:
    near, far = World(DirectoryStore(tmp_path / "near")), World(DistantStore(tmp_path / "far"))
    checkpoint = near.context.upload(model, STEPS)
    with near.context.restore_path(checkpoint) as path:
        assert path.name == checkpoint
        assert path != tmp_path / "near" / checkpoint
    checkpoint = far.context.upload(model, STEPS)
    with far.context.restore_path(checkpoint, selector=lambda path: path == "weights.bin") as path:
        assert set(list_directory(path)) == {"weights.bin"}
    assert not path.exists()


def test_a_selector_chooses_of_files_that_need_not_be_copied_too(tmp_path: Path, model: Path) -> None:
    near = World(DirectoryStore(tmp_path / "near"))
    checkpoint = near.context.upload(model, STEPS)
    with near.context.restore_path(checkpoint, selector=lambda path: path == "weights.bin") as path:
        assert set(list_directory(path)) == {"weights.bin"}


def test_links_are_followed_and_loops_are_not(world: World, model: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "data").write_text("data")
    (model / "linked").symlink_to(tmp_path / "elsewhere")
    (model / "file").symlink_to(tmp_path / "elsewhere" / "data")
    (model / "layers" / "loop").symlink_to(model)

    checkpoint = world.context.upload(model, STEPS)
    world.context.download(checkpoint, tmp_path / "back")

    assert (tmp_path / "back" / "linked" / "data").read_text() == "data"
    assert (tmp_path / "back" / "file").read_text() == "data"
    assert not (tmp_path / "back" / "layers" / "loop").exists()


def test_off_cluster_checkpoints_need_nobody(tmp_path: Path, model: Path) -> None:
    context = DummyCheckpointContext(DummyDistributedContext(), DirectoryStore(tmp_path / "store"))
    checkpoint = context.upload(model)
    with context.restore_path(checkpoint) as path:
        assert json.loads((path / "metadata.json").read_text()) == {}
    assert context.get_metadata(checkpoint) == {}
    with pytest.raises(CheckpointNotFound, match="there is no directory"), context.restore_path("unknown"):
        pass
    with pytest.raises(KeyError), context.store_path({"steps_completed": 1}) as (path, checkpoint):
        raise KeyError
    assert not path.exists()


def test_bytes_that_are_hashed_where_they_lie_are_signs_of_life(tmp_path: Path) -> None:
    moved: list[int] = []
    watch = watch_progress(lambda: moved.append(1))
    store = DirectoryStore(tmp_path / "store", watch=watch)
    context = CheckpointContext(DummyDistributedContext(), store=store, registry=Registry(store), watch=watch)
    with context.store_path(STEPS) as (path, checkpoint):
        (path / "weights").write_bytes(bytes(1 << 20))
    assert moved
    moved.clear()
    # Root reads a copy, others read where the files lie.
    with context.restore_path(checkpoint):
        assert moved


def test_metadata_that_have_no_form_in_json_are_refused(world: World, model: Path) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        world.context.upload(model, {**STEPS, "object": object()})
    assert world.registry.log == []


def test_the_first_checkpoint_in_place_waits_while_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [0, 4096, 1 << 30]
    waits: list[float] = []
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free.pop(0)))
    world = World(DirectoryStore(tmp_path / "store", full_timeout=600.0, sleep=waits.append))
    with world.context.store_path({"steps_completed": 1}) as (path, _):
        (path / "weights").write_bytes(b"w")
    assert len(waits) == 2
