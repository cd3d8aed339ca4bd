"""Training with two real ranks, without a cluster: under plain torchrun, and under plain horovodrun."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.killing import resumes_as_if_never_killed
from support.local_ranks import finish

SCRIPT = Path(__file__).with_name("pytorch_ranks.py")


@pytest.mark.parametrize("backend", ["torch", "horovod"])
def test_two_ranks_stop_together_resume_exactly_and_compute_what_one_does(
    backend: str, tmp_path: Path
) -> None:
    finish(backend, SCRIPT, str(tmp_path), backend)
    assert {path.name for path in tmp_path.glob("passed-*")} == {"passed-0", "passed-1"}


@pytest.mark.parametrize("backend", ["torch", "horovod"])
def test_two_ranks_that_are_killed_go_on_as_if_they_had_not_been(backend: str, tmp_path: Path) -> None:
    resumes_as_if_never_killed(tmp_path, backend)
