"""Ctrl-C while a command still loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("loading", ["dataclasses", "click"])
def test_ctrl_c_while_a_command_loads_is_one_line(tmp_path: Path, loading: str) -> None:
    (tmp_path / f"{loading}.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    script = f"import sys; from resolute_command import main; sys.path.insert(0, {str(tmp_path)!r}); main()"
    # A job in the background ignores Ctrl-C, and its children inherit that.
    command = ["env", "--default-signal=INT", sys.executable, "-c", script, "status"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
