"""Training with two real ranks, without a cluster: under plain torchrun, and under plain horovodrun."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.training.kill_and_resume import assert_resume_is_exact
from support.training.ranks.processes import finish
from support.training.trials import same

SCRIPT = Path(__file__).with_name("pytorch_ranks.py")


@pytest.mark.parametrize("backend", ["torch", "horovod"])
def test_two_ranks_stop_together_resume_exactly_and_compute_what_one_does(
    backend: str, tmp_path: Path
) -> None:
    finish(backend, SCRIPT, str(tmp_path), backend)
    assert {path.name for path in tmp_path.glob("passed-*")} == {"passed-0", "passed-1"}


@pytest.mark.parametrize("backend", ["torch", "horovod"])
def test_two_ranks_that_are_killed_go_on_as_if_they_had_not_been(backend: str, tmp_path: Path) -> None:
    assert_resume_is_exact(tmp_path, backend)


def test_ranks_train_as_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    finish("torch", SCRIPT.with_name("guide_ranks.py"), str(tmp_path))
    first, second = (torch.load(tmp_path / f"weights-{rank}.pt", weights_only=False) for rank in (0, 1))
    assert same(first, second)
