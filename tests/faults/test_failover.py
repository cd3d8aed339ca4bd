"""A few fail-overs during a search; `make failover` makes more."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.harness.failover import run_failovers


@pytest.mark.integration
@pytest.mark.timeout(1800)
def test_a_search_goes_on_at_another_machine_and_the_former_one_writes_nothing(tmp_path: Path) -> None:
    outcome = run_failovers(tmp_path, kills=2, partitions=2, trials=5)
    print(outcome)
    assert not outcome.tally.violations, outcome
    assert (len(outcome.answers), outcome.partitions, outcome.fenced) == (2, 2, 2)
