"""One seed of the fault harness; `make chaos SEEDS=n` runs more."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.harness.chaos import TRIALS, run_seed
from support.suite.sampling import Sample


@pytest.mark.integration
@pytest.mark.timeout(1800)
def test_a_search_with_faults_loses_nothing_and_decides_as_if_undisturbed(
    tmp_path: Path, sample: Sample
) -> None:
    kills = sample.size(whole=100, part=10)
    trials = sample.size(whole=TRIALS, part=5)
    # Shorter than the timeout of the test, which cannot tell what the search waits for.
    outcome = run_seed(sample.number, tmp_path, kills=kills, trials=trials, seconds=1000.0)
    print(outcome)
    assert not outcome.tally.violations, outcome
    assert outcome.damage.kills.total() >= kills
    assert outcome.tally.reports > 3 * kills
