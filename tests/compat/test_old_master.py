"""The stand-in for a Determined master is one to the real packages of three releases."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from support.backends import missing
from support.old_cluster.content import STATES, Content, checkpoint_id
from support.old_cluster.master import OldMaster, serving_old_master

_ROOT = Path(__file__).parents[2]
_PROGRAM = _ROOT / "tests/support/old_cluster/real_client.py"


@pytest.mark.parametrize("release", ["0.19.11", "0.30.0", "0.38.1"])
def test_the_real_client_lists_what_there_is(release: str, tmp_path: Path) -> None:
    python = _ROOT / f".cache/determined/{release}/bin/python"
    if not python.exists():
        missing(f"determined {release} is not installed: `make determined-clients` does that")
    content = Content()
    with serving_old_master(OldMaster(content, release=release)) as address:
        said = subprocess.run(
            [str(python), str(_PROGRAM), address],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
            # It keeps tokens in the home, in a form that differs from release to release.
            env={**os.environ, "HOME": str(tmp_path)},
        )
    found = json.loads(said.stdout)
    ended = [[number, f"experiment {number}", STATES[number % 3]] for number in range(1, 7)]
    assert found["experiments"] == [*ended, [7, "experiment 7", "STATE_ACTIVE"]]
    assert found["config"] == "random"
    assert [number for number, _, _ in found["trials"]] == found["by_objects"] == [1, 2]
    expected = sorted(checkpoint_id(trial, steps) for trial in (1, 2) for steps in (10, 20, 30))
    assert found["checkpoints"] == expected
    assert found["metadata"]["framework"] == "torch-1.10"
    assert len(found["lines"]) == content.lines
    assert found["steps"] == [10 * place for place in range(1, content.points + 1)]
    assert found["workspaces"] == ["Uncategorized", "lab", "attic"]
    assert found["models"] == ["best of all"]
