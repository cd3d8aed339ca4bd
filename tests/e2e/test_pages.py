"""What the pages for users show works: every command of each is run, in order, as it stands there."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.page_commands import run_script, script_of

pytestmark = pytest.mark.timeout(1000)
NEEDS_HTTP = pytest.mark.skipif(sys.hexversion < 0x030B0000, reason="HTTP needs Python 3.11")


def _searches(said: str, folder: Path) -> None:
    assert (folder / "examples/digits/search.png").stat().st_size > 10_000
    assert "drove experiment 2" in said
    listed = said.rpartition("+ resolute e list-trials 2")[2]
    assert len(re.findall(r"\bCOMPLETED\b", listed)) == 2


def _metrics_and_logs(said: str, folder: Path) -> None:
    digits = folder / "examples/digits"
    assert (digits / "reports.csv").read_text().splitlines()[0].startswith("trial")
    assert (digits / "loss.json").stat().st_size > 100
    lines = [json.loads(line) for line in (digits / "lines.jsonl").read_text().splitlines()]
    assert len(lines) == 2
    assert all(re.search(r"at step \d+", line["message"]) for line in lines)
    assert said.rpartition("+ resolute e list")[2].count("COMPLETED") == 2


def _checkpoints(said: str, folder: Path) -> None:
    assert list((folder / "examples/digits/fetched").iterdir())
    kept = said.rpartition("+ resolute c list 1")[2].partition("+ resolute m describe")[0]
    # The latest, and the pinned best, which may be the same.
    assert 1 <= len(re.findall(r"\bCOMPLETED\b", kept)) <= 2


def _from_determined(said: str, folder: Path) -> None:
    listed = said.rpartition("+ det experiment list")[2].partition("+ det trial describe")[0]
    assert "COMPLETED" in listed
    assert "validation" in said.rpartition("+ det trial describe 1")[2]


def _gateway(said: str, folder: Path) -> None:
    assert '"clusterId"' in said
    assert '"grpc_address"' in said


@pytest.mark.sampled(2, group="pages that run long")
@pytest.mark.parametrize(
    ("page", "check"),
    [
        pytest.param("gateway", _gateway, marks=NEEDS_HTTP),
        ("searches", _searches),
        ("metrics-and-logs", _metrics_and_logs),
        ("checkpoints", _checkpoints),
        ("from-determined", _from_determined),
    ],
)
def test_the_commands_of_a_page_run_from_beginning_to_end(
    page: str, check: Callable[[str, Path], None], tmp_path: Path
) -> None:
    check(run_script(script_of(f"docs/{page}.md"), tmp_path, timeout=900), tmp_path)
