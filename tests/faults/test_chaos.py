"""One seed of the fault harness; `make chaos SEEDS=n` runs more."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.harness.chaos import run_seed


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_a_search_under_fire_loses_nothing_and_decides_as_if_undisturbed(tmp_path: Path) -> None:
    outcome = run_seed(1, tmp_path, kills=100)
    print(outcome)
    assert not outcome.violations
    assert sum(outcome.kills.values()) >= 100
    assert outcome.reports > 300
