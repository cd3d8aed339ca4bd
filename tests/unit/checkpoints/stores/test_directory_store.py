from __future__ import annotations

import os
import threading
import uuid
from pathlib import Path

import pytest

from resolute.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    QuotaError,
    UnavailableError,
)
from resolute_checkpoints.blobs.base import FinishedUpload
from resolute_checkpoints.blobs.directory import DirectoryStore
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.os_errors import file_system_errors
from resolute_checkpoints.domain.checkpoint import DirectoryStorage, File

ID = str(uuid.UUID(int=1))
OTHER = str(uuid.UUID(int=2))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


@pytest.fixture
def store(root: Path) -> DirectoryStore:
    return DirectoryStore(root)


def write(root: Path, path: str, content: bytes = b"abc", *, checkpoint_id: str = ID) -> Path:
    target = root / checkpoint_id / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return target


def faults(store: DirectoryStore, *files: File) -> list[str]:
    return [str(fault) for fault in store.faults(ID, files)]


def test_files_that_are_there_with_their_sizes_have_no_fault(root: Path, store: DirectoryStore) -> None:
    names = ["a", "d/e/f", "模型/权重", "with\nnewline", "-rf", "/".join(["x" * 199] * 5), "字" * 85]
    for name in names:
        write(root, name, name.encode())
    (root / ID / "empty").mkdir()
    write(root, "nothing", b"")
    files = [File(name, len(name.encode())) for name in names]
    assert faults(store, *files, File("empty/", 0), File("d/", 0), File("nothing", 0)) == []


def test_every_fault_is_named(root: Path, store: DirectoryStore) -> None:
    write(root, "short", b"ab")
    (root / ID / "directory").mkdir()
    os.mkfifo(root / ID / "pipe")
    assert faults(
        store,
        File("short", 3),
        File("missing", 1),
        File("short/below", 1),
        File("directory", 0),
        File("short/", 0),
        File("pipe", 0),
    ) == [
        "'short' has 2 bytes, not 3",
        "'missing' is not there",
        "'short/below' is not there",
        "'directory' is not a plain file",
        "'short/' is not a directory",
        "'pipe' is not a plain file",
    ]


def test_links_within_a_checkpoint_are_followed(root: Path, store: DirectoryStore) -> None:
    write(root, "step_1/weights")
    (root / ID / "latest").symlink_to("step_1")
    (root / ID / "best").symlink_to("step_1/weights")
    assert faults(store, File("latest/weights", 3), File("best", 3)) == []
    for path in ("latest/weights", "best"):
        with store.open(ID, path, offset=1) as stream:
            assert stream.read() == b"bc"


def test_links_that_lead_out_are_refused(root: Path, store: DirectoryStore, tmp_path: Path) -> None:
    write(root, "secret", checkpoint_id=OTHER)
    (tmp_path / "outside").write_bytes(b"abc")
    write(root, "kept")
    base = root / ID
    (base / "file").symlink_to(tmp_path / "outside")
    (base / "folder").symlink_to(tmp_path)
    (base / "climbing").symlink_to(f"../{OTHER}/secret")
    (base / "loop").symlink_to("loop")
    for path in ("file", "folder/outside", "climbing"):
        assert faults(store, File(path, 3)) == [f"{path!r} leads out of the checkpoint"]
        with pytest.raises(DataLossError, match="leads out of the checkpoint"):
            store.open(ID, path, offset=0)
    assert faults(store, File("loop", 3)) == ["'loop' is not there"]


def test_a_checkpoint_that_is_itself_a_link_is_refused_and_only_unlinked(
    root: Path, store: DirectoryStore, tmp_path: Path
) -> None:
    outside = tmp_path / "precious"
    outside.mkdir()
    (outside / "file").write_bytes(b"abc")
    (root / ID).symlink_to(outside)
    assert faults(store, File("file", 3)) == ["'file' leads out of the checkpoint"]
    with pytest.raises(DataLossError):
        store.open(ID, "file", offset=0)
    store.remove_files(ID, ["file"])
    store.remove(ID, committed=True)
    assert (outside / "file").read_bytes() == b"abc"
    assert not (root / ID).is_symlink()


def test_a_root_that_is_a_link_works(root: Path, tmp_path: Path) -> None:
    write(root, "a")
    (tmp_path / "alias").symlink_to(root)
    store = DirectoryStore(tmp_path / "alias")
    assert faults(store, File("a", 3)) == []
    with store.open(ID, "a", offset=0) as stream:
        assert stream.read() == b"abc"


def test_a_pipe_in_the_place_of_a_file_does_not_hang(root: Path, store: DirectoryStore) -> None:
    (root / ID).mkdir()
    os.mkfifo(root / ID / "model")
    with pytest.raises(DataLossError, match="is not a plain file"):
        store.open(ID, "model", offset=0)


def test_a_missing_file_is_a_loss_of_data(root: Path, store: DirectoryStore) -> None:
    write(root, "a")
    for path in ("b", "a/b"):
        with pytest.raises(DataLossError, match="is not there"):
            store.open(ID, path, offset=0)


def test_removing_leaves_nothing_and_can_be_repeated(
    root: Path, store: DirectoryStore, tmp_path: Path
) -> None:
    for name in ("a", "d/e", "d/f/g"):
        write(root, name)
    write(root, "kept", checkpoint_id=OTHER)
    (tmp_path / "outside").mkdir()
    (root / ID / "link").symlink_to(tmp_path / "outside")
    for _ in range(2):
        store.remove(ID, committed=True)
        assert not (root / ID).exists()
    assert (root / OTHER / "kept").exists()
    assert (tmp_path / "outside").exists()


def test_a_file_in_the_place_of_a_checkpoint_is_removed(root: Path, store: DirectoryStore) -> None:
    (root / ID).write_bytes(b"x")
    store.remove(ID, committed=True)
    assert not (root / ID).exists()


def test_several_may_remove_the_same_checkpoint_at_once(root: Path, store: DirectoryStore) -> None:
    for number in range(300):
        write(root, f"{number % 20}/{number}")
    failures: list[Exception] = []

    def remove() -> None:
        try:
            store.remove(ID, committed=True)
        except Exception as error:  # noqa: BLE001 - shown below
            failures.append(error)

    threads = [threading.Thread(target=remove, name=f"remove-{n}") for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert not (root / ID).exists()


def test_some_files_are_removed_and_directories_only_when_empty(root: Path, store: DirectoryStore) -> None:
    for name in ("a", "d/e", "d/f", "g/h"):
        write(root, name)
    for _ in range(2):
        store.remove_files(ID, ["a", "d/", "d/e", "g/", "g/h", "unknown", "a/b"])
    assert sorted(p.relative_to(root / ID).as_posix() for p in (root / ID).rglob("*")) == ["d", "d/f"]


def test_files_behind_a_link_that_leads_out_are_not_removed(
    root: Path, store: DirectoryStore, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"abc")
    write(root, "kept")
    (root / ID / "folder").symlink_to(outside)
    store.remove_files(ID, ["folder/precious", "folder/"])
    assert (outside / "precious").exists()


def test_an_absent_root_is_taken_for_a_file_system_that_is_not_mounted(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "unmounted")
    for act in (
        lambda: store.faults(ID, [File("a", 1)]),
        lambda: store.open(ID, "a", offset=0),
        lambda: store.remove(ID, committed=True),
        lambda: store.remove_files(ID, ["a"]),
    ):
        with pytest.raises(UnavailableError, match=r"unmounted is not there .* mount it"):
            act()
    store.remove(ID, committed=False)


def test_a_directory_store_gives_no_urls(root: Path, store: DirectoryStore) -> None:
    with pytest.raises(FailedPreconditionError, match=f"write its files to {root}/{ID}"):
        store.upload_urls(ID, [File("a", 1)])
    assert store.download_urls(ID, ["a"]) == ()
    store.finish_uploads(ID, [])
    with pytest.raises(InvalidArgumentError, match="no multipart uploads"):
        store.finish_uploads(ID, [FinishedUpload("a", "id", ())])


@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        (13, FailedPreconditionError, "let its user read and write there"),
        (28, QuotaError, "free some space"),
        (5, UnavailableError, "does not answer"),
    ],
)
def test_failures_of_the_system_name_the_place_and_the_remedy(
    number: int, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=f"/mnt/store.*{message}"), file_system_errors(Path("/mnt/store")):
        raise OSError(number, os.strerror(number))


@pytest.mark.parametrize("path", ["relative", "/a/../b", "/a\0b"])
def test_a_directory_must_be_absolute_and_plain(path: str) -> None:
    with pytest.raises(InvalidArgumentError, match="must be absolute"):
        StoreFactory().open(DirectoryStorage(path))


def test_what_is_reached_through_a_link_is_not_removed(
    root: Path, store: DirectoryStore, tmp_path: Path
) -> None:
    (elsewhere := tmp_path / "elsewhere/1").mkdir(parents=True)
    (root / "cluster").mkdir()
    (root / "cluster/tensorboard").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FailedPreconditionError, match="through a link"):
        store.remove_others("cluster/tensorboard/1")
    assert elsewhere.is_dir()


def test_nothing_is_said_to_be_removed_from_a_storage_that_is_not_mounted(
    root: Path, store: DirectoryStore
) -> None:
    root.rmdir()
    with pytest.raises(UnavailableError):
        store.remove_others("cluster/tensorboard/1")


def test_each_directory_of_a_checkpoint_is_resolved_once(
    root: Path, store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [File(f"{n % 20}/{n}", 3) for n in range(200)]
    for file in files:
        write(root, file.path)
    real, resolved = os.path.realpath, list[str]()

    def realpath(path: str) -> str:
        resolved.append(path)
        return real(path)

    monkeypatch.setattr(os.path, "realpath", realpath)
    assert store.faults(ID, files) == []
    within = [path for path in map(str, resolved) if path.startswith(f"{root / ID}/")]
    assert len(within) == len(set(within)) == 20


def test_a_file_system_that_takes_no_files_is_named_as_such_and_not_as_full() -> None:
    with pytest.raises(FailedPreconditionError, match="/proc takes no new files"):
        DirectoryStore(Path("/proc/checkpoints")).require_free(ID)


def test_a_file_system_that_knows_no_size_is_not_full(
    root: Path, store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result([4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255]))
    store.require_free(ID)
    assert list(root.iterdir()) == []
