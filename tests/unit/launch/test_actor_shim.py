"""Who keeps the supervisor of an actor of Ray, where there is nothing to keep."""

from __future__ import annotations

import io
import json
from pathlib import Path

from resolute_launch.actor.shim import keep


def test_a_shim_whose_folder_was_sent_and_removed_says_that_it_is_over(tmp_path: Path) -> None:
    answers = io.StringIO()
    assert keep(tmp_path / "gone", requests=io.StringIO(), answers=answers) == 0
    assert json.loads(answers.getvalue()) == {"over": True}


def test_a_shim_whose_actor_ended_before_it_said_what_to_start_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    assert keep(folder, requests=io.StringIO(), answers=io.StringIO()) == 0
    assert not folder.exists()
