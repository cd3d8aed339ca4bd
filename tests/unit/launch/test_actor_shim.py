"""Who keeps the supervisor of an actor of Ray, where there is nothing to keep."""

from __future__ import annotations

import io
import json
from pathlib import Path

from resolute.contracts.run.lock import RunLock
from resolute_launch.actor.shim import keep, keep_leftovers


def test_a_shim_whose_folder_was_sent_and_removed_says_that_it_is_over(tmp_path: Path) -> None:
    answers = io.StringIO()
    assert keep(tmp_path / "gone", requests=io.StringIO(), answers=answers) == 0
    assert json.loads(answers.getvalue()) == {"over": True}


def test_a_shim_whose_actor_ended_before_it_said_what_to_start_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    assert keep(folder, requests=io.StringIO(), answers=io.StringIO()) == 0
    assert not folder.exists()


def test_a_shim_that_is_given_the_lock_of_its_folder_does_not_wait_for_it(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    lock = RunLock.acquire(folder / "kept")
    given = lock.descriptor
    assert keep(folder, requests=io.StringIO(), answers=io.StringIO(), descriptor=given) == 0
    assert not folder.exists()


def test_folders_of_a_machine_that_died_before_anything_began_are_removed(tmp_path: Path) -> None:
    for name in ("ours-unlocked", "ours-bare", "ours-locked", "others"):
        (tmp_path / name).mkdir()
    (tmp_path / "ours-unlocked" / "kept").touch()
    lock = RunLock.acquire(tmp_path / "ours-locked" / "kept")
    keep_leftovers(tmp_path, "ours-")
    assert {folder.name for folder in tmp_path.iterdir()} == {"ours-locked", "others"}
    lock.release()
