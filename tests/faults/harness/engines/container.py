"""The engine ``container``: containers of a real Podman, whose service is the engine's daemon."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from faults.harness.cluster_processes import Role
from faults.harness.engines.engine import Kill, Place
from support.engines.containers.image import IMAGE
from support.engines.containers.podman import PodmanService, podman_service
from support.waiting import wait_until

from resolute_engines.container.request import CLUSTER, RANK

_SLOTS = 4
_AWAY_SECONDS = (0.0, 8.0)
"""How long the daemon or the machine is away."""
_END_SECONDS = 60.0


class ContainerEngine:
    """Podman, whose service is killed and started again.

    Args:
        podman: Runs Podman, with an image and a bridge.
        dice: Decides how long something is away.
    """

    variables: Mapping[str, str] = {}
    fallen: Collection[str] = ()

    def __init__(self, podman: PodmanService, *, dice: random.Random) -> None:
        self.podman = podman
        self._dice = dice
        self._service: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        """The bridge's address."""
        return self.podman.host

    def start(self) -> None:
        """Starts the service; returns once it serves."""
        self.podman.socket.unlink(missing_ok=True)
        self._service = subprocess.Popen(
            ["podman", "system", "service", "--time=0", self.podman.url],
            env=self.podman.podman.environment,
            stdin=subprocess.DEVNULL,
        )
        wait_until(self.podman.socket.exists, what="Podman to serve")

    def stop(self) -> None:
        """Kills the service; containers go on."""
        service, self._service = self._service, None
        if service is not None:
            service.kill()
            service.wait(_END_SECONDS)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Nobody serves Podman's API."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def settings(self, place: Place) -> Mapping[str, Any]:
        """One pool, whose containers may mount the evidence."""
        engine = {
            "type": "container",
            "url": self.podman.url,
            "services_address": f"{self.host}:{place.port}",
            "services_certificate": str(place.certificate),
            "bind_mounts": [str(place.evidence)],
            "checkpoint_directories": [str(place.checkpoints)],
        }
        pool = {"pool_name": "boxes", "engine": "podman", "slots": _SLOTS, "image": IMAGE}
        return {"resource_pools": [pool], "engines": {"podman": engine}}

    def config(self, place: Place) -> Mapping[str, Any]:
        """The evidence and the checkpoints, mounted at their own paths."""
        evidence = {"host_path": str(place.evidence), "container_path": str(place.evidence)}
        return {
            "bind_mounts": [evidence],
            "checkpoint_storage": {"type": "shared_fs", "host_path": str(place.checkpoints)},
        }

    def victims(self, home: Path) -> Mapping[Role, Sequence[Kill]]:
        """Containers by their names, the service, and the machine with all of them."""
        return {
            Role.SUPERVISOR: [partial(self._kill, name) for name in self._running(home)],
            Role.ENGINE_DAEMON: [self._restart],
            Role.NODE: [partial(self._lose_machine, home)],
        }

    def left_over(self, home: Path) -> Sequence[str]:
        """Containers, volumes and networks."""
        told = ("--quiet", "--filter", f"label={_label(home)}")
        run = self.podman.podman.run
        return [
            *(f"container {one} is still there" for one in run("ps", "--all", *told).split()),
            *(f"volume {one} is still there" for one in run("volume", "ls", *told).split()),
            *(f"network {one} is still there" for one in run("network", "ls", *told).split()),
        ]

    def _running(self, home: Path) -> list[str]:
        """Those of runs; who sends what a run left has no rank."""
        filters = ("--filter", f"label={_label(home)}", "--filter", f"label={RANK}")
        return self.podman.podman.run("ps", *filters, "--format", "{{.Names}}").split()

    def _kill(self, name: str) -> bool:
        # Podman answers with the name, or fails where the container has ended meanwhile.
        return name in self.podman.podman.run("kill", "--signal", "KILL", name, check=False).split()

    def _restart(self) -> bool:
        self.stop()
        time.sleep(self._dice.uniform(*_AWAY_SECONDS))
        self.start()
        return True

    def _lose_machine(self, home: Path) -> bool:
        self.stop()
        names = self.podman.podman.run("ps", "--filter", f"label={_label(home)}", "--format", "{{.Names}}")
        if names.split():
            self.podman.podman.run("kill", "--signal", "KILL", *names.split(), check=False)
        time.sleep(self._dice.uniform(*_AWAY_SECONDS))
        self.start()
        return True


@contextmanager
def running_podman(folder: Path, *, dice: random.Random) -> Iterator[ContainerEngine]:
    """Podman that serves, until the block ends; skips where it is not installed."""
    folder.mkdir(parents=True)
    with podman_service(folder) as podman:
        engine = ContainerEngine(podman, dice=dice)
        engine.start()
        try:
            yield engine
        finally:
            engine.stop()


def _label(home: Path) -> str:
    return f"{CLUSTER}={json.loads((home / 'cluster.json').read_text())['cluster_id']}"
