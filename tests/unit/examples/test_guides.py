"""What the guides show runs, or says why not; every reason of an error is in the page of symptoms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.page_commands import blocks_of

from resolute.cli.registry.error_reasons import ERROR_REASONS

DOCS = Path(__file__).parents[3] / "docs"


def test_the_engine_of_the_guide_trains_without_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "extending.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "extending.md", "exec"), names)
    assert capsys.readouterr().out == "1 steps\n"
    assert len(list((tmp_path / "engine-checkpoints").glob("[!.]*"))) == 1


@pytest.mark.parametrize("page", ["cluster", "extending"])
def test_every_block_of_commands_that_no_test_runs_says_why(page: str) -> None:
    blocks = blocks_of(f"docs/{page}.md")
    assert blocks
    assert [block.code for block in blocks if not block.reason] == []


def test_every_reason_of_an_error_is_in_the_page_of_symptoms() -> None:
    page = (DOCS / "troubleshooting.md").read_text()
    assert [name for name in ERROR_REASONS if f"(errors.md#{name.lower()})" not in page] == []
