"""Files in directories are compared with the digests that their writers commit."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from resolute.contracts.files.digests import format_digest, new_hash
from resolute_checkpoints.blobs.base import Fault
from resolute_checkpoints.blobs.directory import DirectoryStore
from resolute_checkpoints.blobs.verification import KnownDigests, Verifier
from resolute_checkpoints.blobs.workers import BlobWorkers
from resolute_checkpoints.domain.checkpoint import DirectoryStorage, File

ID = str(uuid.UUID(int=1))
CONTENT = b"weights" * 100_000


@pytest.fixture
def workers() -> Iterator[BlobWorkers]:
    started = BlobWorkers(name="verify", threads=2)
    yield started
    started.close()


def digest_of(content: bytes, algorithm: str) -> str:
    summed = new_hash(algorithm)
    summed.update(content)
    return format_digest(summed, algorithm)


def damaged(root: Path, files: Sequence[File], workers: BlobWorkers) -> list[str]:
    store = DirectoryStore(root)
    reading = Verifier(workers).damaged(store, ID, files, storage=DirectoryStorage(str(root)), caller="")
    return [str(fault) for fault in asyncio.run(reading)]


def test_files_that_are_not_what_was_committed_are_named(tmp_path: Path, workers: BlobWorkers) -> None:
    (tmp_path / ID / "d").mkdir(parents=True)
    for name in ("same", "changed", "d/sum", "unsummed", "unknown", "empty"):
        (tmp_path / ID / name).write_bytes(b"" if name == "empty" else CONTENT)
    (tmp_path / ID / "changed").write_bytes(CONTENT[:-1] + b"X")
    (tmp_path / ID / "link").symlink_to("same")
    sha256 = digest_of(CONTENT, "sha256")
    files = [
        File("same", len(CONTENT), digest_of(CONTENT, "blake3")),
        File("changed", len(CONTENT), sha256),
        File("d/", 0),
        File("d/sum", len(CONTENT), digest_of(CONTENT, "md5")),
        File("unsummed", len(CONTENT)),
        File("unknown", len(CONTENT), "new-kind:00112233"),
        File("empty", 0, digest_of(b"", "blake2b")),
        File("link", len(CONTENT), sha256),
    ]
    assert damaged(tmp_path, files, workers) == ["'changed' has another content than its digest says"]


def test_thousands_of_files_are_compared_in_parts(tmp_path: Path, workers: BlobWorkers) -> None:
    (tmp_path / ID).mkdir()
    (tmp_path / ID / "0").write_bytes(b"x")
    for number in range(1, 2500):
        os.link(tmp_path / ID / "0", tmp_path / ID / str(number))
    right, wrong = digest_of(b"x", "sha256"), digest_of(b"y", "sha256")
    files = [File(str(number), 1, wrong if number in {7, 2400} else right) for number in range(2500)]
    assert [fault.split()[0] for fault in damaged(tmp_path, files, workers)] == ["'7'", "'2400'"]


def test_a_file_is_read_again_only_once_it_has_changed(tmp_path: Path) -> None:
    path, known = tmp_path / "file", KnownDigests(limit=2)
    reads: list[str] = []

    def is_wanted(name: str) -> bool:
        reads.append(name)
        return True

    def digest(name: str = "file") -> str:
        with (tmp_path / name).open("rb") as stream:
            return known.digest(stream.fileno(), "sha256", wanted=lambda: is_wanted(name))

    path.write_bytes(CONTENT)
    assert digest() == f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
    count = len(reads)
    assert (digest(), len(reads)) == (f"sha256:{hashlib.sha256(CONTENT).hexdigest()}", count)
    path.write_bytes(b"other")
    os.utime(path, (1, 1))
    assert digest() == f"sha256:{hashlib.sha256(b'other').hexdigest()}"
    for name in ("second", "third"):
        (tmp_path / name).write_bytes(b"z")
        digest(name)
    reads.clear()
    digest()
    assert reads


def test_reading_ends_with_its_caller(tmp_path: Path, workers: BlobWorkers) -> None:
    (tmp_path / ID).mkdir()
    (tmp_path / ID / "f").write_bytes(CONTENT)
    begun, ended = threading.Event(), threading.Event()

    class Watched(DirectoryStore):
        def _digest(self, checkpoint_id: str, file: File, wanted: Callable[[], bool]) -> str:
            try:
                while True:
                    super()._digest(checkpoint_id, file, wanted)
                    begun.set()
                    self._known = KnownDigests()
            finally:
                ended.set()

    async def scenario() -> None:
        file = File("f", len(CONTENT), digest_of(CONTENT, "sha256"))
        storage = DirectoryStorage(str(tmp_path))
        verifier = Verifier(workers)
        reading = asyncio.ensure_future(
            verifier.damaged(Watched(tmp_path), ID, [file], storage=storage, caller="")
        )
        assert await asyncio.to_thread(begun.wait, 60)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(scenario())
    assert ended.wait(60)


@pytest.mark.parametrize("other", [("workspace 2", "here"), ("workspace 1", "elsewhere")])
def test_endless_files_of_one_workspace_hold_up_no_other_and_no_other_storage(
    other: tuple[str, str], tmp_path: Path
) -> None:
    for name in ("here", "elsewhere"):
        (tmp_path / name / ID).mkdir(parents=True)
        (tmp_path / name / ID / "f").write_bytes(CONTENT)
    file = File("f", len(CONTENT), digest_of(CONTENT, "sha256"))
    begun = threading.Semaphore(0)

    class Endless(DirectoryStore):
        def _digest(self, checkpoint_id: str, file: File, wanted: Callable[[], bool]) -> str:
            begun.release()
            while True:
                super()._digest(checkpoint_id, file, wanted)
                self._known = KnownDigests()

    async def read(verifier: Verifier, name: str, caller: str, *, kind: type[DirectoryStore]) -> list[Fault]:
        storage = DirectoryStorage(str(tmp_path / name))
        return await verifier.damaged(kind(tmp_path / name), ID, [file], storage=storage, caller=caller)

    async def scenario() -> None:
        threads = BlobWorkers(name="verify", threads=8)
        verifier = Verifier(threads)
        endless = [
            asyncio.create_task(read(verifier, "here", "workspace 1", kind=Endless)) for _ in range(20)
        ]
        try:
            for _ in range(2):
                assert await asyncio.to_thread(begun.acquire, timeout=60)
            caller, name = other
            assert await asyncio.wait_for(read(verifier, name, caller, kind=DirectoryStore), 60) == []
        finally:
            for task in endless:
                task.cancel()
            await asyncio.gather(*endless, return_exceptions=True)
            await asyncio.to_thread(threads.close)

    asyncio.run(scenario())
