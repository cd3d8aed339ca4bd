"""What docs/integrations.md shows, and the examples of other libraries: all of it runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "integrations.md"
EXAMPLES = ("digits_lightning", "text_transformers", "digits_accelerate")

pytestmark = pytest.mark.integration


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_blocks_of_the_page_run_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    found = {path.name for path in (tmp_path / "resolute" / "checkpoints").glob("*/*")}
    assert {"checkpoint-4", "lightning.ckpt", "model.safetensors"} <= found


@pytest.mark.sampled(1, group="processes with other libraries")
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_trains_a_batch_and_makes_a_checkpoint(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    command = [sys.executable, "train.py", "--test"]
    done = subprocess.run(command, cwd=ROOT / "examples" / name, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "validation metrics at 1 steps" in done.stderr
    assert len(list((tmp_path / "resolute" / "checkpoints").glob("*/metadata.json"))) >= 1
