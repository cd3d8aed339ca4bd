"""Ranks that keep the others waiting are named; what takes long is no hang. ``make hangs`` has more."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.harness import hangs
from faults.harness.hangs import KINDS, Planted
from support.clusters.embedded import embedded
from support.waiting import wait_until

AFTER = 8.0
"""Seconds: long enough for the looks of a busy machine, short enough for a test."""
pytestmark = [pytest.mark.timeout(400), pytest.mark.sampled(1, group="planted hangs")]


@pytest.mark.parametrize("kind", KINDS)
def test_the_rank_is_named_that_keeps_the_others_waiting(tmp_path: Path, kind: str) -> None:
    with embedded(tmp_path, slots=hangs.RANKS) as cluster, cluster.client() as client:
        found = hangs.find(client, Planted(kind, rank=1, step=20), after=AFTER)
        assert found.names_rank, found.sentence
        assert found.seconds > 0


def test_a_long_validation_without_a_word_is_no_hang(tmp_path: Path) -> None:
    with embedded(tmp_path, slots=hangs.RANKS) as cluster, cluster.client() as client:
        experiment = hangs.submit(client, Planted("validation", rank=0, step=20), after=2 * AFTER)
        trial = experiment.await_first_trial()

        def ended() -> bool:
            experiment.reload()
            return experiment.state.is_terminal

        wait_until(ended, what="its end", seconds=300)
        log = "\n".join(trial.iter_logs())
        assert "planted at" in log
        assert "nothing of the run moves" not in log
