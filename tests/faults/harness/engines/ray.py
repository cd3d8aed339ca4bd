"""The engine ``ray``: actors of a real Ray; its daemons are our driver and the raylets of its nodes."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from faults.harness.cluster_processes import Role, running
from faults.harness.engines.engine import Kill, Place
from support.daemons.ray import PYTHON, RayCluster, running_ray

from resolute.contracts.processes import ProcessIdentity
from resolute.errors import UnavailableError
from resolute_engines.ray.client import DRIVER, Driver

_AWAY_SECONDS = (0.0, 15.0)
"""How long a node is away."""
_SHIM, _SUPERVISOR = "resolute_launch.actor", "resolute_launch.supervisor"


class RayEngine:
    """Ray, of which each part is killed and started again.

    Args:
        ray: It; it is up.
        dice: Decides how long something is away.
    """

    host = ""
    variables: Mapping[str, str] = {}
    fallen: Collection[str] = ()

    def __init__(self, ray: RayCluster, *, dice: random.Random) -> None:
        self.ray = ray
        self._dice = dice

    def settings(self, place: Place) -> Mapping[str, Any]:
        """One pool: the processors of both nodes."""
        engine = {
            "type": "ray",
            "address": self.ray.address,
            "python": sys.executable,
            "driver_python": str(PYTHON),
        }
        return {
            "resource_pools": [{"pool_name": "nodes", "engine": "ray", "slot_type": "cpu"}],
            "engines": {"ray": engine},
        }

    def config(self, place: Place) -> Mapping[str, Any]:
        """The directory of checkpoints, which both nodes share."""
        return {"checkpoint_storage": {"type": "shared_fs", "host_path": str(place.checkpoints)}}

    def victims(self, home: Path) -> Mapping[Role, Sequence[Kill]]:
        """Supervisors and their shims, the driver and a node's raylet, a machine, and all with the head."""
        kept = [one for program in (_SUPERVISOR, _SHIM) for one in self._kept(program)]
        drivers = running(str(DRIVER), self.ray.address)
        return {
            Role.SUPERVISOR: [partial(one.send, signal.SIGKILL) for one in kept],
            Role.ENGINE_DAEMON: [
                self._restart_raylet,
                *(partial(one.send, signal.SIGKILL) for one in drivers),
            ],
            Role.NODE: [self._restart_machine, self._restart_all],
        }

    def left_over(self, home: Path) -> Sequence[str]:
        """Folders, processes, and what Ray has."""
        prefix = _prefix(home)
        try:
            names = asyncio.run(self._names(prefix))
        except UnavailableError as failure:
            names = [str(failure)]
        folders = self.ray.directory.glob(f"*/{prefix}*")
        return [
            *(f"the folder {path.name} is still there" for path in folders),
            *(f"supervisor {one.pid} still runs" for one in self._kept(_SUPERVISOR)),
            *(f"shim {one.pid} still runs" for one in self._kept(_SHIM)),
            *(f"allocation {name} is still there" for name in names),
        ]

    async def _names(self, prefix: str) -> list[str]:
        driver = Driver(self.ray.address, prefix=prefix, python=str(PYTHON))
        try:
            return list(await driver.call("names"))
        finally:
            await driver.close()

    def _kept(self, program: str) -> list[ProcessIdentity]:
        return running(program, f"{self.ray.directory}/")

    def _restart_raylet(self) -> bool:
        self.ray.kill_raylet("worker")
        self.ray.start_worker()
        return True

    def _restart_machine(self) -> bool:
        self.ray.kill_machine("worker")
        time.sleep(self._dice.uniform(*_AWAY_SECONDS))
        self.ray.start_worker()
        return True

    def _restart_all(self) -> bool:
        # Ray starts no head beside a node of the last one on the same machine.
        for name in ("head", "worker"):
            self.ray.kill_machine(name)
        time.sleep(self._dice.uniform(*_AWAY_SECONDS))
        self.ray.start_head()
        self.ray.start_worker()
        return True


def _prefix(home: Path) -> str:
    """Begins the names of all that a home's cluster has."""
    return f"resolute-{json.loads((home / 'cluster.json').read_text())['cluster_id'][:8]}-"


@contextmanager
def attacked_ray(*, dice: random.Random) -> Iterator[RayEngine]:
    """A Ray of its own until the block ends; skips where it is not installed."""
    with running_ray() as ray:
        yield RayEngine(ray, dice=dice)
