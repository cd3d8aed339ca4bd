"""The engine ``slurm``: jobs of a real Slurm; its daemons are the controller and those of its nodes."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from faults.harness.cluster_processes import Role, running
from faults.harness.engines.engine import Kill, Place
from support.daemons.slurm import NODES, SlurmCluster, running_slurm

from resolute.contracts.processes import ProcessIdentity

_AWAY_SECONDS = (0.0, 15.0)
"""How long a daemon or a node is away: shorter and longer than Slurm's patience with a node, 10 s."""
_SUPERVISOR = "resolute_launch.supervisor"


class SlurmEngine:
    """Slurm, of which each part is killed and started again.

    Args:
        slurm: It; it is up.
        directory: Shared by all nodes; holds the run directories.
        dice: Decides who, and how long it is away.
    """

    host = ""
    fallen: Collection[str] = ()

    def __init__(self, slurm: SlurmCluster, directory: Path, *, dice: random.Random) -> None:
        self.slurm = slurm
        self._directory = directory
        self._dice = dice

    @contextmanager
    def away(self) -> Iterator[None]:
        """No controller; the daemons of the nodes stay."""
        self.slurm.stop_controller()
        try:
            yield
        finally:
            self.slurm.start_controller()

    @property
    def variables(self) -> Mapping[str, str]:
        """Where Slurm's commands are."""
        return {"PATH": self.slurm.environment["PATH"]}

    def settings(self, place: Place) -> Mapping[str, Any]:
        """One pool: a processor of each node."""
        conf = self.slurm.environment["SLURM_CONF"]
        return {
            "resource_pools": [{"pool_name": "nodes", "engine": "hpc", "slot_type": "cpu"}],
            "engines": {"hpc": {"type": "slurm", "directory": str(self._directory), "conf": conf}},
        }

    def config(self, place: Place) -> Mapping[str, Any]:
        """The directory of checkpoints, which all nodes share."""
        return {"checkpoint_storage": {"type": "shared_fs", "host_path": str(place.checkpoints)}}

    def victims(self, home: Path) -> Mapping[Role, Sequence[Kill]]:
        """Supervisors, any daemon, and nodes with all that runs on them."""
        nodes = [f"node{number}" for number in range(NODES)]
        return {
            Role.SUPERVISOR: [partial(one.send, signal.SIGKILL) for one in self._supervisors()],
            Role.ENGINE_DAEMON: [self._restart_controller, partial(self._restart_node, nodes[0], False)],
            Role.NODE: [partial(self._restart_node, node, True) for node in nodes],
        }

    def left_over(self, home: Path) -> Sequence[str]:
        """Run directories, jobs, and supervisors."""
        queue = subprocess.run(
            ["squeue", "--noheader", "--format=%j %T"],
            env=self.slurm.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        there = self._directory.iterdir() if self._directory.is_dir() else ()
        return [
            *(f"the directory of run {path.name} is still there" for path in there),
            *(f"job {line} is still there" for line in queue.stdout.splitlines()),
            *(f"supervisor {one.pid} still runs" for one in self._supervisors()),
        ]

    def _supervisors(self) -> list[ProcessIdentity]:
        return running(_SUPERVISOR, f"{self._directory}/")

    def _restart_controller(self) -> bool:
        self.slurm.kill("slurmctld")
        time.sleep(self._dice.uniform(*_AWAY_SECONDS))
        self.slurm.start_controller()
        return True

    def _restart_node(self, node: str, jobs: bool) -> bool:
        self.slurm.kill(node, jobs=jobs)
        time.sleep(self._dice.uniform(*_AWAY_SECONDS))
        self.slurm.start_node(int(node.removeprefix("node")))
        return True


@contextmanager
def attacked_slurm(folder: Path, *, dice: random.Random) -> Iterator[SlurmEngine]:
    """A Slurm of its own until the block ends; skips where it is not installed."""
    with running_slurm() as slurm:
        yield SlurmEngine(slurm, folder / "runs", dice=dice)
