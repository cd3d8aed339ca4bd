"""What the documented experiment config does: every row of ``documented_behaviours.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from unit.config.conftest import with_changes

from resolute.contracts.documents.faults import ConfigError
from resolute_config.layer import Layer
from resolute_config.loading.parse import parse_config

ROWS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "documented_behaviours.yaml").read_text()
)


def at(document: Any, path: str) -> Any:
    """The value at a path of names and positions."""
    for step in path.split("."):
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["shows"])
def test_the_config_does_what_is_documented(row: dict[str, Any]) -> None:
    layers = [Layer(name, row[name]) for name in ("template", "cluster") if name in row]
    changes = dict(row.get("config", {}))
    text = with_changes(changes)
    if "refused" in row:
        with pytest.raises(ConfigError) as caught:
            parse_config(text, layers=layers)
        assert row["refused"] in {fault.path for fault in caught.value.faults}
    else:
        document = parse_config(text, layers=layers).to_dict()
        assert {path: at(document, path) for path in row["becomes"]} == row["becomes"]


def test_rows_are_distinct() -> None:
    shown = [row["shows"] for row in ROWS]
    assert len(set(shown)) == len(shown) >= 136
