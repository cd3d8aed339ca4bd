"""A training of two ranks on two nodes of an engine: it stops, goes on, and survives the death of a node."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from support.clusters.distributed import TORCHRUN, DistributedTrial
from support.clusters.embedded import EmbeddedCluster

from resolute.client import ExperimentState

SECONDS = 240.0
STEPS = 400
_EVERY = 50
"""Steps between two checkpoints."""
_RANKS = Path(__file__).parents[2] / "engines" / "world_ranks.py"


@contextmanager
def submitted(cluster: EmbeddedCluster, *settings: str) -> Iterator[DistributedTrial]:
    """Submits the example of torchrun, whose ranks say where they are; no restart is allowed to it.

    Args:
        cluster: The cluster.
        settings: More keys of the config, each as ``name=value``.
    """
    with cluster.client() as client:
        yield DistributedTrial.create(
            cluster,
            client,
            replace(TORCHRUN, script=_RANKS.name, includes=(_RANKS,)),
            f"entrypoint=python3 -m determined.launch.torch_distributed {_RANKS.name}",
            f"searcher.max_length={STEPS}",
            f"hyperparameters.checkpoint_every={_EVERY}",
            "hyperparameters.seconds_per_step=0.05",
            "max_restarts=0",
            *settings,
        )


def nodes_of(trial: DistributedTrial) -> list[dict[int, str]]:
    """The node of each rank, for each run whose ranks have met; all had two ranks on two nodes."""
    told = re.findall(r"\[rank=(\d+)\].* world of 2, sum 3, on (\S+)", trial.log())
    runs = [{int(rank): node for rank, node in told[at : at + 2]} for at in range(0, len(told), 2)]
    assert all(sorted(run) == [0, 1] and run[0] != run[1] for run in runs), told
    return runs


def outcomes(trial: DistributedTrial) -> list[str]:
    """How its runs ended."""
    (described,) = trial.cluster.json("t", "describe", str(trial.trial.id))
    return [run["outcome"] for run in described["trial"]["runs"]]


def stops_goes_on_and_survives(
    trial: DistributedTrial, kill_node: Callable[[str], None], *, victim: int
) -> None:
    """Pauses a trial, activates it, ends the node of one of its ranks, and lets it complete.

    Args:
        trial: As ``submitted`` made it.
        kill_node: Ends a node with all that runs on it.
        victim: The rank whose node is ended.
    """
    trial.wait_for_step(20, timeout=SECONDS)
    trial.experiment.pause()
    trial.wait_for(ExperimentState.PAUSED, timeout=SECONDS)
    stopped = trial.logged_steps("stopped at step")
    assert len(stopped) == 2
    assert stopped[0] == stopped[1] < STEPS

    trial.experiment.activate()
    # Past a checkpoint of this run, so that the next one resumes from there and not from the pause.
    trial.wait_for_step(stopped[0] // _EVERY * _EVERY + _EVERY + 10, timeout=SECONDS)
    kill_node(nodes_of(trial)[-1][victim])
    trial.wait_for(ExperimentState.COMPLETED, timeout=SECONDS)

    resumed = trial.logged_steps("resumed at step")
    assert resumed[:2] == stopped
    assert len(resumed) == 4
    assert resumed[2] == resumed[3] > stopped[0]
    assert resumed[2] % _EVERY == 0
    assert trial.logged_steps("finished at step") == [STEPS, STEPS]
    assert len(nodes_of(trial)) == 3
    assert outcomes(trial) == ["PREEMPTED", "LOST", "COMPLETED"]
    assert trial.restarts == 0
    # The pause and the death cost time, and no report.
    assert set(trial.reported("training")) == set(range(10, STEPS + 1, 10))
    assert trial.reported("validation") == [STEPS]
