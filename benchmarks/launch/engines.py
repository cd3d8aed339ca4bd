"""How long after a submit the first line of user code runs on each engine, beside the engine's own command.

    python benchmarks/launch/engines.py [--engines container,slurm,kubernetes] [--rounds 7]

The same script runs in the same image, on as much of a processor: submitted by the Python client (the time
until its config and code are accepted included), and by ``podman run``, by ``sbatch``, and as a Pod made by
the API, in turn. Each engine's real daemons are started for it; ``tools/install_engines.sh`` installs them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from faults.harness.engines.engine import FaultEngine
from faults.harness.engines.opened import opened
from faults.harness.fault_cluster import FaultCluster, fault_cluster
from support.waiting import wait_until

from resolute.client import Client

MOST_SECONDS = {"container": 1.5, "slurm": 1.0, "kubernetes": 1.0}
PEERS = {"container": "podman run", "slurm": "sbatch", "kubernetes": "a Pod"}
SCRIPT = """
import os, pathlib, sys, time
part = pathlib.Path(sys.argv[1] + ".part")
part.write_text(str(time.time()))
part.rename(sys.argv[1])
"""
_SECONDS = 120.0
_SLOTS = 4
_POD_CPUS = 1.0
"""Share of a processor of each Pod. With less it is measured how long Kubernetes holds processes back."""


class Bare:
    """The script, run by an engine's own means.

    Args:
        engine: The engine; its daemons are up.
        cluster: The cluster beside it, for the same mounts.
        script: The script, in a directory that the engine's containers see.
    """

    def __init__(self, engine: FaultEngine, cluster: FaultCluster, script: Path) -> None:
        self._engine: Any = engine
        self._cluster = cluster
        self._script = script
        self._pods: set[str] = set()

    def run(self, name: str) -> Callable[[Path], None]:
        """What runs the script on an engine of this name."""
        return {"container": self.container, "slurm": self.slurm, "kubernetes": self.kubernetes}[name]

    def container(self, told: Path) -> None:
        """Runs a container, and waits for its end."""
        from support.engines.containers.image import IMAGE

        folder = self._script.parent
        command = ["run", "--rm", "--user", "10001:10001", "--volume", f"{folder}:{folder}", IMAGE, "python3"]
        self._engine.podman.podman.run(*command, str(self._script), str(told))

    def slurm(self, told: Path) -> None:
        """Submits a job."""
        wrapped = f"{sys.executable} {self._script} {told}"
        subprocess.run(
            ["sbatch", "--output=/dev/null", f"--wrap={wrapped}"],
            env={**os.environ, **self._engine.slurm.environment},
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def kubernetes(self, told: Path) -> None:
        """Creates a Pod."""
        options = self._engine.kubernetes.pool_options
        ours = self._engine.config(self._cluster.place)["environment"]["pod_spec"]["spec"]
        spec = options["pod_spec"]["spec"]
        mounts = [mount for part in (spec, ours) for mount in part["containers"][0]["volumeMounts"]]
        container = {
            "name": "bare",
            "image": options["image"],
            "imagePullPolicy": "Never",
            "command": [sys.executable, str(self._script), str(told)],
            "resources": {kind: {"cpu": f"{_POD_CPUS:g}"} for kind in ("limits", "requests")},
            "volumeMounts": mounts,
        }
        name = f"bare-{uuid.uuid4().hex[:8]}"
        body = {
            "metadata": {"name": name},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "containers": [container],
                "volumes": [*spec["volumes"], *ours["volumes"]],
            },
        }
        self._engine.kubernetes.call("/api/v1/namespaces/default/pods", body)
        self._pods.add(name)

    def ended(self) -> bool:
        """Whether no Pod of its has a share of the node any more: what is submitted would wait for that."""
        if not self._pods:
            return True
        listed = self._engine.kubernetes.call("/api/v1/namespaces/default/pods")["items"]
        phases = {each["metadata"]["name"]: each["status"].get("phase") for each in listed}
        return all(phases[name] in {"Succeeded", "Failed"} for name in self._pods)


def by(run: Callable[[Path], None], told: Path) -> float:
    """Seconds until the script has told that it runs."""
    told.unlink(missing_ok=True)
    begun = time.time()
    run(told)
    wait_until(told.exists, what="the first line", seconds=_SECONDS)
    return float(told.read_text()) - begun


def by_submit(
    client: Client, engine: FaultEngine, cluster: FaultCluster, script: Path
) -> Callable[[Path], None]:
    """Submits it to the cluster, waits for its end, and for the engine to be as it was."""

    def run(told: Path) -> None:
        config = {
            **engine.config(cluster.place),
            "name": "first-line",
            "entrypoint": ["python3", "train.py", str(told)],
            "searcher": {"name": "single", "metric": "x", "max_length": 1},
            "max_restarts": 0,
        }
        client.create_experiment(config, str(script.parent / "code")).wait(interval=0.2)

    return run


@contextmanager
def running(name: str, folder: Path) -> Iterator[FaultEngine]:
    """An engine, whose runs have what a bare one has."""
    with opened(name, folder, dice=Random(0)) as engine:
        if name == "kubernetes":
            pods: Any = engine
            pods.cpus_per_slot = _POD_CPUS
        yield engine


def measured(name: str, folder: Path, rounds: int) -> bool:
    """Measures an engine, prints a line, and returns whether it met its limit."""
    with (
        running(name, folder / "engine") as engine,
        fault_cluster(folder, slots=_SLOTS, services_apart=False, engine=engine) as cluster,
        cluster.client() as client,
    ):
        told, script = cluster.place.evidence / "told", cluster.place.evidence / "train.py"
        code = script.parent / "code"
        code.mkdir()
        for path in (script, code / "train.py"):
            path.write_text(SCRIPT)
        submit, bare = by_submit(client, engine, cluster, script), Bare(engine, cluster, script)
        pairs = []
        for _ in range(rounds + 1):
            plainly = by(bare.run(name), told)
            wait_until(bare.ended, what="the end of the bare one", seconds=_SECONDS, pause=0.2)
            pairs.append((plainly, by(submit, told)))
            wait_until(
                lambda: _quiet(engine, cluster), what="the engine to be quiet", seconds=_SECONDS, pause=0.2
            )
    pairs = pairs[1:]  # The first warms caches, and makes the runtime that is mounted into images.
    plain, ours = (statistics.median(times) for times in zip(*pairs, strict=True))
    added = statistics.median(ours - plain for plain, ours in pairs)
    sys.stdout.write(
        f"{name}: {PEERS[name]} {plain:.2f} s, from a submit {ours:.2f} s; {added:+.2f} s "
        f"(at most {MOST_SECONDS[name]}; medians of {rounds})\n"
    )
    sys.stdout.flush()
    return added <= MOST_SECONDS[name]


def _quiet(engine: FaultEngine, cluster: FaultCluster) -> bool:
    """Whether nothing is left of the last round; a bare Pod stays, ended."""
    return not [one for one in engine.left_over(cluster.home) if "bare-" not in one]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--engines", default=",".join(MOST_SECONDS), help="which, with commas between")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    met = True
    for name in options.engines.split(","):
        # Not pytest's own directory: the path of a socket must be short, and trials are other users.
        with tempfile.TemporaryDirectory(prefix="resolute-bench-") as folder:
            try:
                met &= measured(name, Path(folder), options.rounds)
            except pytest.skip.Exception as absent:
                sys.stdout.write(f"absent: {name}; {absent}\n")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
