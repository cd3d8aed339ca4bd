"""Two ranks under each launch layer: they train, stop together, continue, and survive the death of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters.distributed import (
    DEEPSPEED,
    HOROVOD,
    TORCHRUN,
    DistributedScript,
    Submit,
    environment_of,
)
from support.clusters.embedded import EmbeddedCluster, embedded
from support.waiting import wait_until

from resolute.client import ExperimentState

LAYERS = pytest.mark.parametrize(
    "script", [TORCHRUN, HOROVOD, DEEPSPEED], ids=["torch_distributed", "horovod", "deepspeed"]
)
ONE_CONTAINER, TWO_NODES = "one container", "two nodes"
FAULTY = Path(__file__).with_name("failing_rank.py")
TENSORFLOW = Path(__file__).with_name("tensorflow_workers.py")
SHARED_MEMORY = Path("/dev/shm")
SLOW = "hyperparameters.seconds_per_step=0.03"


@pytest.fixture(scope="module", params=[ONE_CONTAINER, TWO_NODES])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedCluster]:
    environment = {"RESOLUTE_LOCAL_NODES": "2"} if request.param == TWO_NODES else {}
    with embedded(tmp_path_factory.mktemp("home"), slots=2, **environment) as running:
        yield running


@LAYERS
def test_ranks_stop_at_one_step_go_on_there_and_survive_the_death_of_one(
    submit: Submit, script: DistributedScript
) -> None:
    trial = submit(script, SLOW, "hyperparameters.checkpoint_every=50")
    trial.wait_for_step(20)
    trial.experiment.pause()
    trial.wait_for(ExperimentState.PAUSED)
    stopped = trial.logged_steps("stopped at step")
    assert len(stopped) == 2
    assert stopped[0] == stopped[1] < 200

    trial.experiment.activate()
    # Past a checkpoint of this run, so that the next one resumes from there and not from the pause.
    trial.wait_for_step(stopped[0] // 50 * 50 + 60)
    port = environment_of(trial.process_of(0)).get("MASTER_PORT", "")
    trial.kill_rank(1)
    trial.wait_for(ExperimentState.COMPLETED)
    assert not buffers(port)
    resumed = trial.logged_steps("resumed at step")
    assert resumed[:2] == stopped
    assert len(resumed) == 4
    assert resumed[2] == resumed[3] > stopped[0]
    assert resumed[2] % 50 == 0
    assert trial.logged_steps("finished at step") == [200, 200]
    assert trial.restarts == 1
    assert "rank 1 failed first; it was killed (SIGKILL)" in trial.log()
    # The pause and the death cost time, and no report.
    assert set(trial.reported("training")) == set(range(10, 201, 10))
    assert trial.reported("validation") == [200]
    for rank in (0, 1):
        lines = trial.log(rank)
        assert f"[rank={rank}]" in lines
        assert f"[rank={1 - rank}]" not in lines
        assert "finished at step 200" in lines


def test_a_lost_node_is_no_restart_though_the_ranks_of_the_other_fail_of_it(submit: Submit) -> None:
    trial = submit(TORCHRUN, SLOW, "hyperparameters.checkpoint_every=50", "max_restarts=0")
    trial.wait_for_step(60)
    trial.kill_node(1)
    trial.wait_for(ExperimentState.COMPLETED)
    assert trial.restarts == 0
    resumed = trial.logged_steps("resumed at step")
    assert len(resumed) == 2
    assert resumed[0] == resumed[1] > 0


@pytest.mark.parametrize("layer", ["torch_distributed", "horovod", "deepspeed"])
def test_one_rank_that_fails_ends_the_others_and_its_traceback_is_the_trials(
    submit: Submit, layer: str
) -> None:
    script = DistributedScript(
        folder=TORCHRUN.folder, config=TORCHRUN.config, script="failing_rank.py", includes=(FAULTY,)
    )
    entrypoint = f"python3 -m determined.launch.{layer} failing_rank.py"
    trial = submit(script, f"entrypoint={entrypoint}", "max_restarts=0")
    trial.wait_for(ExperimentState.ERROR)
    said = trial.log().partition("rank 1 failed first; it ended with exit code 1")[2]
    assert "Traceback (most recent call last)" in said
    assert "ValueError: rank 1 finds no data" in said
    (description,) = trial.cluster.json("e", "describe", trial.number)
    assert "ValueError: rank 1 finds no data" in str(description)


@LAYERS
def test_the_traceback_of_the_rank_that_failed_first_is_what_the_trial_ends_with(
    submit: Submit, script: DistributedScript
) -> None:
    trial = submit(script, "hyperparameters.learning_rate=fast", "max_restarts=0")
    trial.wait_for(ExperimentState.ERROR)
    log = trial.log()
    said = log[log.index(" failed first; it ended with exit code 1") :]
    assert "Traceback (most recent call last)" in said
    assert "TypeError" in said


def test_workers_of_tensorflow_are_told_of_each_other_wherever_they_run(
    cluster: EmbeddedCluster, submit: Submit
) -> None:
    script = DistributedScript(
        folder=TORCHRUN.folder, config=TORCHRUN.config, script=TENSORFLOW.name, includes=(TENSORFLOW,)
    )
    layer = "python3 -m determined.launch.tensorflow"
    trial = submit(script, f"entrypoint={layer} {script.script}", "max_restarts=0")
    trial.wait_for(ExperimentState.COMPLETED)
    log = trial.log()
    if "RESOLUTE_LOCAL_NODES" not in cluster.environment:
        # One container has one worker, with all slots.
        assert "worker 0 of 1: [[0]]" in log
        return
    for rank in (0, 1):
        assert f"[rank={rank}] worker {rank} of 2: [[0, 1], [0, 1]]" in log


def test_what_ranks_left_outside_of_their_run_goes_with_it_though_all_of_it_was_killed(
    cluster: EmbeddedCluster, submit: Submit
) -> None:
    trial = submit(DEEPSPEED, SLOW)
    trial.wait_for_step(10)
    environment = environment_of(trial.process_of(0))
    scratch = Path(environment["TMPDIR"])
    left = {scratch, *buffers(environment["MASTER_PORT"])}
    # Ranks of one machine share memory.
    assert len(left) == (1 if "RESOLUTE_LOCAL_NODES" in cluster.environment else 3)
    trial.experiment.kill()
    trial.wait_for(ExperimentState.CANCELED)
    wait_until(lambda: not any(path.exists() for path in left), what=f"the end of {left}")


def buffers(port: str) -> list[Path]:
    """Memory that ranks of DeepSpeed share, of the world that met at a port."""
    return list(SHARED_MEMORY.glob(f"deepspeed_allreduce_buffer_{os.getuid()}_*_{port}_*"))
