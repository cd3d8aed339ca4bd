"""Every test here runs real distributed worlds, through a cluster of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.world)
            item.add_marker(pytest.mark.timeout(300))
