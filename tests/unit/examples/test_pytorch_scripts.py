"""The scripts with a ``Trainer``, without a cluster: each as its page says that it is started."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.ports import free_port

EXAMPLE = Path(__file__).parents[3] / "examples" / "pytorch_scripts"
COMMANDS = re.findall(r"^((?:python3|torchrun) .*?) *#", (EXAMPLE / "README.md").read_text(), re.MULTILINE)

pytestmark = pytest.mark.integration


def run(command: str, home: Path) -> str:
    """Runs a command as at a prompt; returns what it logs."""
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(EXAMPLE.parents[1] / "compat"),
        "XDG_DATA_HOME": str(home),
        "OMP_NUM_THREADS": "1",
        "RESOLUTE_COLLECTIVE_PORTS": f"{free_port()},{free_port()}",
    }
    command = command.replace("torchrun", f"torchrun --master_port={free_port()}")
    done = subprocess.run(
        shlex.split(command),
        cwd=EXAMPLE,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("command", "steps"),
    [
        ("python3 local.py", [20, 40, 45]),
        ("python3 local.py --test", [1]),
        ("torchrun --nproc_per_node=2 several_ranks.py", [20, 23]),
        ("torchrun --nproc_per_node=2 anywhere.py", [20, 23]),
    ],
)
def test_a_script_trains_validates_and_makes_checkpoints(
    command: str, steps: list[int], tmp_path: Path
) -> None:
    assert command in COMMANDS
    said = run(command, tmp_path)
    assert [int(step) for step in re.findall(r"validation metrics at (\d+) steps", said)] == steps
    found = [json.loads(path.read_text())["steps_completed"] for path in tmp_path.rglob("metadata.json")]
    assert sorted(found) == steps
