"""A training of two ranks on two nodes of an engine: it stops, goes on, and survives the death of a node."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from support.backends import need_module
from support.clusters.distributed import DEEPSPEED, HOROVOD, TORCHRUN, DistributedScript, DistributedTrial
from support.engines.nodes import SECONDS, Nodes

from resolute.client import ExperimentState

EXAMPLES: Mapping[str, DistributedScript] = {
    "torch_distributed": TORCHRUN,
    "horovod": HOROVOD,
    "deepspeed": DEEPSPEED,
}
"""What ranks train by, for each launch layer."""
STEPS = 400
_EVERY = 50
"""Steps between two checkpoints."""
_TESTS = Path(__file__).parents[2]
_RANKS = _TESTS / "engines" / "world_ranks.py"
_MEETING = _TESTS / "distributed" / "launch" / "network_ranks.py"


def need_layer(layer: str) -> None:
    """Skips the test where what a layer launches is not installed."""
    if layer != "torch_distributed":
        need_module(layer)


def stops_goes_on_and_survives(nodes: Nodes, layer: str, *, victim: int) -> None:
    """Pauses a trial, activates it, ends the node of one of its ranks, and lets it complete.

    Args:
        nodes: Where it runs.
        layer: The launch layer.
        victim: The rank whose node is ended.
    """
    with nodes.cluster.client() as client:
        example = EXAMPLES[layer]
        trial = DistributedTrial.create(
            nodes.cluster,
            client,
            replace(example, script=_RANKS.name, includes=(_RANKS, _MEETING)),
            f"entrypoint=python3 -m determined.launch.{layer} {_RANKS.name} {Path(example.script).stem}",
            f"searcher.max_length={STEPS}",
            f"hyperparameters.checkpoint_every={_EVERY}",
            "hyperparameters.seconds_per_step=0.05",
            "max_restarts=0",
            *nodes.settings,
        )
        try:
            stopped = _stops(trial)
            _goes_on(trial, stopped)
            nodes.kill(_nodes_of(trial)[-1][victim])
            _survives(trial, stopped)
        finally:
            trial.experiment.reload()
            if not trial.experiment.state.is_terminal:
                trial.experiment.kill()
            nodes.recover()


def _stops(trial: DistributedTrial) -> int:
    """Pauses it; returns the step at which all ranks have stopped."""
    trial.wait_for_step(20, timeout=SECONDS)
    trial.experiment.pause()
    trial.wait_for(ExperimentState.PAUSED, timeout=SECONDS)
    first, second = trial.logged_steps("stopped at step")
    assert first == second < STEPS
    return first


def _goes_on(trial: DistributedTrial, stopped: int) -> None:
    """Activates it; returns once this run has a checkpoint, from which the next one resumes then."""
    trial.experiment.activate()
    trial.wait_for_step(stopped // _EVERY * _EVERY + _EVERY + 10, timeout=SECONDS)


def _survives(trial: DistributedTrial, stopped: int) -> None:
    """Waits until it has completed on other nodes."""
    trial.wait_for(ExperimentState.COMPLETED, timeout=SECONDS)
    resumed = trial.logged_steps("resumed at step")
    assert resumed[:2] == [stopped] * 2
    assert len(resumed) == 4
    assert resumed[2] == resumed[3] > stopped
    assert resumed[2] % _EVERY == 0
    assert trial.logged_steps("finished at step") == [STEPS, STEPS]
    assert len(_nodes_of(trial)) == 3
    assert _outcomes(trial) == ["PREEMPTED", "LOST", "COMPLETED"]
    assert trial.restarts == 0
    # The pause and the death cost time, and no report.
    assert set(trial.reported("training")) == set(range(10, STEPS + 1, 10))
    assert trial.reported("validation") == [STEPS]


def _nodes_of(trial: DistributedTrial) -> list[dict[int, str]]:
    """The node of each rank, for each run whose ranks have met; all had two ranks on two nodes."""
    told = re.findall(r"\[rank=(\d+)\].* world of 2, sum 3, on (\S+)", trial.log())
    runs = [{int(rank): node for rank, node in told[at : at + 2]} for at in range(0, len(told), 2)]
    assert all(sorted(run) == [0, 1] and run[0] != run[1] for run in runs), told
    return runs


def _outcomes(trial: DistributedTrial) -> list[str]:
    """How its runs ended."""
    (described,) = trial.cluster.json("t", "describe", str(trial.trial.id))
    return [run["outcome"] for run in described["trial"]["runs"]]
