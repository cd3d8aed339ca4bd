"""What docs/core-api.md shows works as it is shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from resolute import core

PAGE = Path(__file__).parents[3] / "docs" / "core-api.md"


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_the_blocks_run_one_after_another_without_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 8
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert len(list((tmp_path / "checkpoints").glob("[!.]*"))) == 4


@pytest.mark.parametrize(
    ("section", "context"), [("Metrics", core.TrainContext), ("Checkpoints", core.CheckpointContext)]
)
def test_every_call_in_a_table_exists(section: str, context: type) -> None:
    text = PAGE.read_text().partition(f"## {section}")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    calls = re.findall(r"`(\w+)\(", " ".join(rows))
    assert calls
    assert [call for call in calls if not hasattr(context, call)] == []
