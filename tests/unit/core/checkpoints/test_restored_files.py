"""Whatever a script does with the files of a restored checkpoint, the committed one stays as it was."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from resolute import core
from resolute.core.checkpoint.files import view
from resolute.core.checkpoint.files.manifest import list_directory

NOT_EVEN_ROOT = ["setpriv", "--bounding-set=-dac_override"]
"""Starts a program to which modes of files apply, also as root."""


@pytest.fixture
def context(tmp_path: Path) -> Any:
    with core.init(checkpoint_storage=str(tmp_path / "store")) as context:
        yield context


def stored(context: core.Context) -> str:
    with context.checkpoint.store_path({"steps_completed": 1}) as (directory, checkpoint):
        (directory / "deep").mkdir()
        (directory / "deep" / "model").write_text("weights")
        (directory / "latest").symlink_to("deep/model")
        (directory / "vocabulary").write_text("words")
    return checkpoint


def contents(directory: Path) -> dict[str, bytes]:
    names = list_directory(directory)
    return {name: b"" if name.endswith("/") else (directory / name).read_bytes() for name in names}


def rename(path: Path) -> None:
    (path / "deep" / "model").rename(path / "best")
    (path / "deep").rename(path / "deeper")


def delete(path: Path) -> None:
    (path / "deep" / "model").unlink()
    (path / "vocabulary").unlink()


def overwrite(path: Path) -> None:
    (path / "deep" / "model").write_text("other weights")


def overwrite_by_a_link(path: Path) -> None:
    (path / "latest").write_text("other weights")


def append(path: Path) -> None:
    with (path / "vocabulary").open("a") as file:
        file.write("more")


def truncate(path: Path) -> None:
    os.truncate(path / "deep" / "model", 2)


def replace(path: Path) -> None:
    (path / "new").write_text("other words")
    (path / "new").replace(path / "vocabulary")


def change_mode(path: Path) -> None:
    (path / "deep" / "model").unlink()
    path.chmod(0o700)


def remove_all(path: Path) -> None:
    shutil.rmtree(path)


def remove_all_and_what_it_is_in(path: Path) -> None:
    shutil.rmtree(path.parent)


def add(path: Path) -> None:
    (path / "deep" / "added").write_text("of the script")
    (path / "folder").mkdir()


DAMAGES = [
    *(rename, delete, overwrite, overwrite_by_a_link, append, truncate, replace, change_mode),
    *(remove_all, remove_all_and_what_it_is_in, add),
]


@pytest.mark.parametrize("mode", core.DownloadMode)
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_a_script_does_with_restored_files_does_no_damage(
    context: core.Context, tmp_path: Path, damage: Callable[[Path], None], mode: core.DownloadMode
) -> None:
    checkpoint = stored(context)
    before = contents(tmp_path / "store" / checkpoint)
    with context.checkpoint.restore_path(checkpoint, mode) as path:
        assert path.name == checkpoint
        try:
            damage(path)
        except PermissionError:
            assert os.geteuid() != 0
    assert contents(tmp_path / "store" / checkpoint) == before
    with context.checkpoint.restore_path(checkpoint) as path:
        assert contents(path) == before
    assert {found.name for found in (tmp_path / "store" / checkpoint).iterdir()} == {
        *("deep", "latest", "metadata.json", "vocabulary")
    }


SCRIPT = """
import sys
from pathlib import Path

from resolute import core
from test_restored_files import DAMAGES

store, checkpoint = sys.argv[1:]
with core.init(checkpoint_storage=store) as context:
    for damage in DAMAGES:
        with context.checkpoint.restore_path(checkpoint) as path:
            try:
                damage(path)
            except PermissionError:
                print(damage.__name__)
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv, of util-linux")
def test_files_that_cannot_be_overwritten_are_links_and_take_no_room(
    context: core.Context, tmp_path: Path
) -> None:
    checkpoint = stored(context)
    committed = tmp_path / "store" / checkpoint
    before = contents(committed)
    ended = subprocess.run(
        [*NOT_EVEN_ROOT, sys.executable, "-c", SCRIPT, str(tmp_path / "store"), checkpoint],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    assert ended.returncode == 0, ended.stderr
    if not view._clones_in(tmp_path):
        refused = {damage.__name__ for damage in (overwrite, overwrite_by_a_link, append, truncate)}
        assert set(ended.stdout.split()) == refused
    assert contents(committed) == before


def test_a_view_shares_the_bytes_of_the_files(context: core.Context, tmp_path: Path) -> None:
    committed = tmp_path / "store" / stored(context)
    with view.view_of(committed) as path:
        assert contents(path) == contents(committed)
        shares = (path / "deep" / "model").samefile(committed / "deep" / "model")
        assert shares or view._clones_in(committed)
    assert not path.exists()


def test_a_directory_in_which_nothing_can_be_made_is_given_as_it_is(
    context: core.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    committed = tmp_path / "store" / stored(context)

    def refuse(*_: object, **__: object) -> str:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with view.view_of(committed) as path:
        assert path == committed
    assert caplog.text == ""


def test_files_that_cannot_be_linked_are_given_where_they_lie_with_a_warning(
    context: core.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    committed = tmp_path / "store" / stored(context)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(view, "_clones_in", lambda _: False)
    with view.view_of(committed) as path:
        assert path == committed
    assert "it must neither rename nor remove them" in caplog.text
    assert {found.name for found in committed.iterdir()} == {"deep", "latest", "metadata.json", "vocabulary"}


def test_a_large_checkpoint_is_not_copied_even_for_root(
    context: core.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint = stored(context)
    monkeypatch.setattr(view, "_MOST_COPIED", 3)
    monkeypatch.setattr(view, "_clones_in", lambda _: False)
    with caplog.at_level(logging.WARNING), context.checkpoint.restore_path(checkpoint) as path:
        assert (path / "deep" / "model").samefile(tmp_path / "store" / checkpoint / "deep" / "model")
        rename(path)
    assert (tmp_path / "store" / checkpoint / "deep" / "model").read_text() == "weights"
    assert ("is too large to be copied" in caplog.text) == (os.geteuid() == 0)


def test_processes_that_read_at_once_do_not_see_each_others_views(
    context: core.Context, tmp_path: Path
) -> None:
    checkpoint = stored(context)
    before = contents(tmp_path / "store" / checkpoint)

    def read(_: int) -> dict[str, bytes]:
        with view.view_of(tmp_path / "store" / checkpoint) as path:
            return contents(path)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read, range(100))) == [before] * 100


def test_what_a_killed_process_left_is_no_part_of_the_checkpoint_and_goes_with_it(
    context: core.Context, tmp_path: Path
) -> None:
    checkpoint = stored(context)
    committed = tmp_path / "store" / checkpoint
    before = contents(committed)
    killed = view.view_of(committed)
    assert killed.__enter__().exists()
    context.checkpoint.download(checkpoint, tmp_path / "downloaded")
    assert contents(tmp_path / "downloaded") == before
    with context.checkpoint.restore_path(checkpoint) as path:
        assert contents(path) == before
    context.checkpoint.delete(checkpoint)
    assert not committed.exists()
