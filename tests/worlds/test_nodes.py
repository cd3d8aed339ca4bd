"""A trial across two pretended machines: two containers of one slot each, with addresses of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.embedded import EmbeddedCluster, embedded
from support.worlds import WorldTrial

pytestmark = pytest.mark.xdist_group("world-nodes")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2, RESOLUTE_LOCAL_NODES="2") as running:
        yield running


def test_both_containers_stop_at_one_step_go_on_and_survive_the_death_of_a_rank(
    cluster: EmbeddedCluster,
) -> None:
    options = ("hyperparameters.seconds_per_step=0.05", "hyperparameters.checkpoint_every=50")
    trial = WorldTrial.create(cluster, "torchrun.yaml", *options)
    trial.wait_for_step(20)
    cluster.det("e", "pause", trial.experiment)
    trial.wait_for("PAUSED")
    stopped = trial.steps_said("stopped at step")
    assert len(stopped) == 2
    assert stopped[0] == stopped[1]
    cluster.det("e", "activate", trial.experiment)
    trial.wait_for_step(stopped[0] + 10)
    trial.kill_rank(1)
    trial.wait_for("COMPLETED")
    assert trial.restarts == 1
    assert trial.steps_said("finished at step") == [200, 200]
    assert "[rank=1]" in trial.log(1)
