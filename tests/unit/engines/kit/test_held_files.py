"""What people may look at of a run that failed: its files, and neither links nor credentials."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resolute.api.experiments.v1.trials_service_pb2 import ListRunFilesResponse
from resolute.contracts.files import left_files
from resolute.errors import NotFoundError
from resolute_engines.kit.run_directories.held_files import list_files, read_file

RUN = "11111111-2222-3333-4444-555555555555.1"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / RUN / "0"
    (folder / "work" / "out").mkdir(parents=True)
    (folder / "work" / "out" / "nan.pt").write_bytes(b"weights")
    (folder / "work" / "core").write_bytes(b"c" * 10)
    (folder / "stacks").write_text("Thread 1")
    (folder / "exit.json").write_text("{}")
    for secret in ("token", "user-token", "launch.json"):
        (folder / secret).write_text("secret")
    (folder / "secrets").mkdir()
    (folder / "secrets" / "key").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "shadow").write_text("secret")
    (folder / "work" / "link").symlink_to(folder / "token")
    (folder / "work" / "folder").symlink_to(tmp_path / "outside")
    os.mkfifo(folder / "work" / "pipe")
    return tmp_path / "runs"


def test_files_are_listed_without_links_pipes_and_credentials(runs: Path) -> None:
    listed = {file.path: file.size for file in list_files(runs, RUN)}
    assert listed == {
        "0/stacks": 8,
        "0/exit.json": 2,
        "0/work/core": 10,
        "0/work/out/nan.pt": 7,
    }
    assert list_files(runs, "another.1") == []


def test_a_folder_whose_name_is_no_text_hides_no_others(runs: Path) -> None:
    work = os.fsencode(runs / RUN / "0" / "work")
    for name in (b"caf\xe9", b"two\nlines"):
        os.mkdir(work + b"/" + name)  # noqa: PTH102 - of bytes
        Path(os.fsdecode(work + b"/" + name), "weights").write_bytes(b"w")
    messages = [ListRunFilesResponse.File(path=file.path) for file in list_files(runs, RUN)]
    assert [message.path for message in messages] == [
        "0/stacks",
        "0/exit.json",
        "0/work/core",
        "0/work/out/nan.pt",
    ]


def test_a_file_is_read_part_by_part(runs: Path) -> None:
    assert read_file(runs, RUN, "0/work/out/nan.pt", offset=0, size=4) == b"weig"
    assert read_file(runs, RUN, "0/work/out/nan.pt", offset=4, size=4) == b"hts"
    assert read_file(runs, RUN, "0/work/out/nan.pt", offset=7, size=4) == b""


@pytest.mark.parametrize(
    "path",
    [
        "0/token",
        "0/secrets/key",
        "0/launch.json",
        "0/work/link",
        "0/work/folder/shadow",
        "0/work/pipe",
        "0/work/out",
        "0/work/../token",
        "0/work/out/../../token",
        "0/work//core",
        "../outside/shadow",
        "0/stacks/x",
        "/etc/passwd",
        "1/stacks",
        "0",
        "0/work/core\0",
        "",
    ],
)
def test_nothing_else_can_be_read(runs: Path, path: str) -> None:
    with pytest.raises(NotFoundError, match="is none of the files that the run left"):
        read_file(runs, RUN, path, offset=0, size=100)


@pytest.mark.parametrize("offset", [7, 8, 2**62, 2**63 - 1])
def test_nothing_is_read_behind_the_end(runs: Path, offset: int) -> None:
    assert read_file(runs, RUN, "0/work/out/nan.pt", offset=offset, size=1 << 20) == b""


def test_of_countless_files_and_folders_some_are_looked_at(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = 0

    class Counted:
        def __init__(self, entries: Any) -> None:
            self._entries = entries

        def __enter__(self) -> Iterator[Any]:
            return self._counted()

        def _counted(self) -> Iterator[Any]:
            nonlocal looked_at
            for entry in self._entries:
                looked_at += 1
                yield entry

        def __exit__(self, *_: object) -> None:
            self._entries.close()

    monkeypatch.setattr(left_files, "MOST_ENTRIES", 30)
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: Counted(real(folder)))
    for number in range(20):
        (runs / RUN / "0" / "work" / "empty" / str(number) / "empty").mkdir(parents=True)
    for number in range(50):
        (runs / RUN / "0" / "work" / "many" / str(number)).parent.mkdir(exist_ok=True)
        (runs / RUN / "0" / "work" / "many" / str(number)).touch()
    list_files(runs, RUN)
    assert looked_at <= 30


def test_files_of_long_paths_fit_into_one_answer(runs: Path) -> None:
    folder = os.open(runs / RUN / "0" / "work", os.O_DIRECTORY)
    try:
        for _ in range(15):
            os.mkdir("d" * 250, dir_fd=folder)
            below = os.open("d" * 250, os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = below
        for number in range(1_500):
            os.close(os.open(f"{number:05}", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    finally:
        os.close(folder)
    listed = list_files(runs, RUN)
    assert 500 < len(listed) < 600
    answer = ListRunFilesResponse(files=[ListRunFilesResponse.File(path=file.path) for file in listed])
    assert answer.ByteSize() < 3 << 20
