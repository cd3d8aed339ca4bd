"""The list of a run's files for who does not see its directory, whatever the run left in the list's place."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from resolute.contracts.files.left_files import LISTING
from resolute_launch.container.left_files import write_listing


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "work").mkdir(parents=True)
    (folder / "work" / "nan.pt").write_bytes(b"weights")
    (folder / "token").write_text("secret")
    return folder


def test_files_are_listed_with_their_sizes(run: Path) -> None:
    subprocess.run([sys.executable, "-m", "resolute_launch.container.left_files", str(run)], check=True)
    assert json.loads((run / LISTING).read_text()) == [["work/nan.pt", 7]]


@pytest.mark.parametrize("planted", ["file", "folder", "link"])
def test_a_list_of_the_run_s_own_making_is_replaced(run: Path, tmp_path: Path, planted: str) -> None:
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    if planted == "file":
        (run / LISTING).write_text('[["work/../../shadow", 1]]')
    elif planted == "folder":
        (run / LISTING).mkdir()
        (run / LISTING / "x").touch()
    else:
        (run / LISTING).symlink_to(outside)
    write_listing(run)
    assert not (run / LISTING).is_symlink()
    assert json.loads((run / LISTING).read_text()) == [["work/nan.pt", 7]]
    assert outside.read_text() == "untouched"


def test_a_run_directory_that_became_a_link_is_not_listed(run: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(run)
    with pytest.raises(NotADirectoryError, match="is a link"):
        write_listing(link)
    assert not (run / LISTING).exists()
