"""A ``DeepSpeedTrial`` on two nodes of one slot each: it pauses, loses a rank, and continues bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.backends import need_module
from support.clusters.distributed import DistributedScript, Submit, environment_of
from support.clusters.embedded import EmbeddedCluster, embedded

from resolute.client import ExperimentState

need_module("deepspeed")

TRIAL = DistributedScript(
    folder=Path(__file__).parents[3] / "examples" / "deepspeed",
    config="trial.yaml",
    script="model_def:DigitsTrial",
)
EPOCH = 22
"""Batches of one."""
EPOCHS = 24
SETTINGS = (
    f"searcher.max_length.epochs={EPOCHS}",
    "reproducibility.experiment_seed=3",
    "min_checkpoint_period.epochs=4",
)
BUSY = 240.0
"""Seconds that a few epochs may take where others train too."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2, RESOLUTE_LOCAL_NODES="2") as running:
        yield running


def test_a_trial_on_two_nodes_pauses_loses_a_rank_and_ends_as_if_undisturbed(submit: Submit) -> None:
    whole, disturbed = submit(TRIAL, *SETTINGS), submit(TRIAL, *SETTINGS)
    whole.wait_for(ExperimentState.COMPLETED, timeout=BUSY)

    disturbed.wait_for_step(EPOCH, timeout=BUSY)
    environment = environment_of(disturbed.process_of(1))
    assert (environment["LOCAL_RANK"], environment["CROSS_RANK"], environment["USE_DEEPSPEED"]) == (
        "0",
        "1",
        "1",
    )
    disturbed.experiment.pause()
    disturbed.wait_for(ExperimentState.PAUSED)
    paused_at = max(disturbed.reported("training"))
    assert paused_at < EPOCH * EPOCHS

    disturbed.experiment.activate()
    # Past a checkpoint of this run, so that the next one continues from there and not from the pause.
    disturbed.wait_for_step(paused_at // (4 * EPOCH) * 4 * EPOCH + 5 * EPOCH, timeout=BUSY)
    disturbed.kill_rank(1)
    disturbed.wait_for(ExperimentState.COMPLETED, timeout=BUSY)

    assert (whole.restarts, disturbed.restarts) == (0, 1)
    assert "rank 1 failed first; it was killed (SIGKILL)" in disturbed.log()
    assert disturbed.metrics("validation") == whole.metrics("validation")
    assert list(whole.metrics("validation")) == [EPOCH * epoch for epoch in range(1, EPOCHS + 1)]
    files = {Path(name).name for name in disturbed.trial.list_checkpoints()[0].resources}
    assert {f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in (0, 1)} <= files
