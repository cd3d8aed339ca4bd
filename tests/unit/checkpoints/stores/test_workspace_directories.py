"""Directories of workspaces: whose they are, and that nothing leads out of where they lie."""

from __future__ import annotations

import os
import shutil
import stat
import uuid
from pathlib import Path

import pytest
from support.processes.crash_points import CrashPoints, kill_at_step, steps_of

from resolute.errors import FailedPreconditionError, InvalidArgumentError, PermissionDeniedError
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.roots import Roots
from resolute_checkpoints.blobs.workspace_directories import make_workspace_directory

CLUSTER = str(uuid.UUID(int=7))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoints"
    path.mkdir()
    return path


def make(root: Path, workspace_id: int = 1, *, roots: Roots | None = None) -> Path:
    stores = StoreFactory(roots=roots)
    made = make_workspace_directory(stores, str(root), cluster_id=CLUSTER, workspace_id=workspace_id)
    return Path(made)


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o2770])
def test_each_workspace_has_one_with_the_owner_and_the_mode_of_the_one_above(root: Path, mode: int) -> None:
    if os.geteuid() == 0:
        os.chown(root, 10001, 10002)
    root.chmod(mode)
    made = [make(root, number) for number in (1, 2)]
    assert made == [root / f"workspaces-{CLUSTER}" / name for name in ("1", "2")]
    wanted = root.stat()
    for directory in (*made, made[0].parent):
        found = directory.stat()
        assert (found.st_uid, found.st_gid) == (wanted.st_uid, wanted.st_gid)
        assert stat.S_IMODE(found.st_mode) == mode


def test_what_a_killed_process_left_half_made_is_finished_and_what_is_in_it_stays(root: Path) -> None:
    root.chmod(0o777)
    made = make(root)
    (made / "state").write_text("kept")
    made.chmod(0o700)
    assert make(root) == made
    assert stat.S_IMODE(made.stat().st_mode) == 0o777
    assert (made / "state").read_text() == "kept"


@pytest.mark.parametrize("place", ["", "1"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "file"])
def test_no_link_that_was_left_there_is_followed(root: Path, tmp_path: Path, place: str, kind: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    planted = root / f"workspaces-{CLUSTER}" / place
    planted.parent.mkdir(exist_ok=True)
    if kind == "file":
        planted.touch()
    else:
        planted.symlink_to(elsewhere if kind == "link" else tmp_path / "nowhere")
    with pytest.raises(FailedPreconditionError, match=f"{planted} is not a directory"):
        make(root)
    assert list(elsewhere.iterdir()) == []
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o700
    assert not (tmp_path / "nowhere").exists()


def test_a_directory_that_is_not_mounted_is_not_made(root: Path) -> None:
    root.rmdir()
    with pytest.raises(FailedPreconditionError, match=f"{root} is not there"):
        make(root)
    assert not root.exists()


def test_it_is_made_only_where_checkpoints_may_lie(root: Path, tmp_path: Path) -> None:
    with pytest.raises(PermissionDeniedError):
        make(root, roots=Roots(directories=(tmp_path / "allowed",)))
    with pytest.raises(InvalidArgumentError):
        make(Path("checkpoints"))
    assert list(root.iterdir()) == []


def test_a_process_killed_at_any_step_leaves_what_the_next_one_finishes(root: Path, tmp_path: Path) -> None:
    """Each system call by which the directories come is a step; no step leaves what trials could not use."""
    root.chmod(0o2777)
    if os.geteuid() == 0:
        os.chown(root, 10001, 10002)
        root.chmod(0o2777)

    def work(steps: CrashPoints) -> None:
        for name in ("mkdir", "fsync", "fchown", "fchmod"):
            steps.around(os, name)
        make(root)

    steps = steps_of(work)
    wanted = root.stat()
    assert steps >= 2 * 2 * (4 if os.geteuid() == 0 else 3)  # two directories, before and after each call
    for fatal in range(1, steps + 1):
        shutil.rmtree(root / f"workspaces-{CLUSTER}")
        kill_at_step(fatal, work)
        for directory in (made := make(root), made.parent):
            found = directory.stat()
            assert (found.st_uid, found.st_gid) == (wanted.st_uid, wanted.st_gid), f"killed at step {fatal}"
            assert stat.S_IMODE(found.st_mode) == 0o2777, f"killed at step {fatal}"
        assert sorted(root.rglob("*")) == [made.parent, made]
