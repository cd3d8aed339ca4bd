"""The dashboard shows the metrics that services serve, all of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
_NAME = re.compile(r"\bresolute_[a-z_]+\b")


def test_the_dashboard_shows_every_metric_that_the_page_lists_and_no_other() -> None:
    dashboard = json.loads((ROOT / "deploy/grafana/resolute.json").read_text())
    shown = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in _NAME.findall(target["expr"])
    }
    page = (
        (ROOT / "docs/operations.md").read_text().partition("## Health and metrics")[2].partition("\n## ")[0]
    )
    listed = {name for line in page.splitlines() if line.startswith("| `") for name in _NAME.findall(line)}
    assert shown == listed
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
