"""Two ranks under torchrun: they train, stop together, go on, and survive the death of one of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.embedded import EmbeddedCluster, embedded
from support.worlds import WorldTrial

pytestmark = pytest.mark.xdist_group("world-torchrun")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2) as running:
        yield running


def test_it_trains_and_its_log_can_be_read_by_rank(cluster: EmbeddedCluster) -> None:
    trial = WorldTrial.create(cluster, "torchrun.yaml", "searcher.max_length=60")
    trial.wait_for("COMPLETED")
    for rank in (0, 1):
        lines = trial.log(rank)
        assert "finished at step 60" in lines
        assert f"[rank={rank}]" in lines
        assert f"[rank={1 - rank}]" not in lines
    assert trial.reported("validation") == [60]


def test_all_ranks_stop_at_one_step_and_go_on_from_there(cluster: EmbeddedCluster) -> None:
    trial = WorldTrial.create(cluster, "torchrun.yaml", "hyperparameters.seconds_per_step=0.03")
    trial.wait_for_step(20)
    cluster.det("e", "pause", trial.experiment)
    trial.wait_for("PAUSED")
    stopped = trial.steps_said("stopped at step")
    assert len(stopped) == 2
    assert stopped[0] == stopped[1]
    assert stopped[0] < 200
    cluster.det("e", "activate", trial.experiment)
    trial.wait_for("COMPLETED")
    assert trial.steps_said("resumed at step") == stopped
    assert trial.steps_said("finished at step") == [200, 200]
    # Every report once: the pause cost time and nothing else.
    assert trial.reported("training") == list(range(10, 201, 10))
    assert trial.restarts == 0


def test_the_death_of_one_rank_costs_a_restart_from_the_checkpoint(cluster: EmbeddedCluster) -> None:
    options = ("hyperparameters.seconds_per_step=0.03", "hyperparameters.checkpoint_every=50")
    trial = WorldTrial.create(cluster, "torchrun.yaml", *options)
    trial.wait_for_step(60)
    trial.kill_rank(1)
    trial.wait_for("COMPLETED")
    assert trial.restarts == 1
    resumed = trial.steps_said("resumed at step")
    assert len(resumed) == 2
    assert resumed[0] == resumed[1]
    assert resumed[0] in {50, 100, 150}
    assert "rank 1 failed first; it was killed (SIGKILL)" in trial.log()


def test_the_traceback_of_the_rank_that_failed_first_ends_the_log(cluster: EmbeddedCluster) -> None:
    options = ("hyperparameters.learning_rate=fast", "max_restarts=0")
    trial = WorldTrial.create(cluster, "torchrun.yaml", *options)
    trial.wait_for("ERROR")
    log = trial.log()
    said = log[log.index(" failed first; it ended with exit code 1") :]
    assert "Traceback (most recent call last)" in said
    assert "TypeError" in said
