"""The page for operators: its commands run, and the numbers that it names are served."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import pytest
from support.clusters.embedded import embedded
from support.pages.commands import blocks_of
from support.ports import free_port

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"
CONFIG = """
name: waiting
entrypoint: sleep 600
hyperparameters: {}
searcher: {name: single, metric: loss, max_length: 1}
"""


@pytest.mark.sampled(2, group="pages that run long")
def test_commands_of_the_page_work_and_its_numbers_are_there(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    port = free_port()
    with embedded(tmp_path / "home", RESOLUTE_METRICS_PORT=str(port)) as cluster:
        cluster.det("e", "create", "config.yaml", "--paused", cwd=tmp_path)
        for block in blocks_of("docs/operations.md"):
            for line in block.code.splitlines() if not block.reason else ():
                cluster.run(*line.split())
        opened = [path for path in (tmp_path / "home").glob("**/*.sqlite*") if path.stat().st_mode & 0o077]
        assert opened == []
        findings = json.loads(cluster.run("resolute", "doctor", "--json").stdout)
        assert {"subject": "services", "verdict": "ok"}.items() <= next(
            one for one in findings if one["subject"] == "services"
        ).items()
        (job,) = cluster.json("job", "list")
        assert (job["priority"], job["weight"], job["max_slots"]) == (10, 2.0, 4)
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        named = re.findall(r"`(resolute_[a-z_]+)`", PAGE.read_text())
        assert len(named) > 15
        assert [name for name in named if f"\n{name}" not in f"\n{text}"] == []
