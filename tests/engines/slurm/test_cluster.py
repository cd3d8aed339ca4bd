"""A whole cluster whose trials are jobs of a real Slurm."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.daemons.slurm import NODES, SlurmCluster
from support.waiting import wait_until

from resolute_engines.settings import FILE_NAME
from resolute_engines.slurm.client import JobSpec, SlurmClient
from resolute_engines.slurm.commands.runner import SlurmCommands

SECONDS = 240.0
SETTINGS = """
resource_pools: [{{pool_name: cheap, engine: hpc, partition: {partition}, slot_type: cpu}}]
engines: {{hpc: {{type: slurm, directory: {directory}, conf: {conf}}}}}
"""
CONFIG = """
name: long
entrypoint: python3 train.py
environment: {{environment_variables: ["MAY_END={may_end}"]}}
resources: {{resource_pool: cheap}}
slurm: {{sbatch_args: [--exclusive]}}
searcher: {{name: single, metric: loss, max_length: 1}}
max_restarts: 0
"""
SCRIPT = """
import os, sys, time
import determined as det

info = det.get_cluster_info()
with det.core.init() as core:
    if info.latest_checkpoint:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            print("continues with", (path / "state").read_text(), flush=True)
    for op in core.searcher.operations():
        print("training on", os.environ["SLURM_JOB_PARTITION"], flush=True)
        while not os.path.exists(os.environ["MAY_END"]):
            time.sleep(0.05)
            if core.preempt.should_preempt():
                with core.checkpoint.store_path({"steps_completed": 7}) as (path, _):
                    (path / "state").write_text("seven steps")
                sys.exit(0)
        op.report_completed(1.0)
"""


# It has a checkpoint when it is told, and the next one takes longer than Slurm waits.
SLOW_SAVE = """
import os, signal, sys, time
import determined as det

info = det.get_cluster_info()
with det.core.init() as core:
    if info.latest_checkpoint:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            print("continues with", (path / "state").read_text(), flush=True)
    else:
        with core.checkpoint.store_path({"steps_completed": 7}) as (path, _):
            (path / "state").write_text("seven steps")
    for op in core.searcher.operations():
        print("training on", os.environ["SLURM_JOB_PARTITION"], flush=True)
        while not os.path.exists(os.environ["MAY_END"]):
            time.sleep(0.05)
            if core.preempt.should_preempt():
                if STUBBORN:
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                with core.checkpoint.store_path({"steps_completed": 8}) as (path, _):
                    (path / "state").write_text("half of eight")
                    print("saving", flush=True)
                    while True:
                        time.sleep(0.05)
        op.report_completed(1.0)
"""


def test_preempted_trial_goes_on_from_its_checkpoint_without_a_restart(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    with _serving(slurm, tmp_path, script=SCRIPT, partition="spot") as cluster:
        # The command of docs/slurm.md.
        seen = cluster.run("resolute", "doctor", "--nodes").stdout
        assert f"nodes of pool cheap: all {NODES} see {tmp_path / 'shared'}" in seen
        _begin(cluster, tmp_path, partition="spot")
        _preempt(slurm, cluster)
        _end(cluster, tmp_path)
        assert [each["outcome"] for each in _runs(cluster)] == ["PREEMPTED", "COMPLETED"]


@pytest.mark.parametrize("stubborn", [False, True], ids=["ends-at-sigterm", "ignores-sigterm"])
def test_preemption_with_too_short_a_grace_costs_the_half_checkpoint_and_no_restart(
    slurm: SlurmCluster, tmp_path: Path, *, stubborn: bool
) -> None:
    script = SLOW_SAVE.replace("STUBBORN", str(stubborn))
    with _serving(slurm, tmp_path, script=script, partition="hasty") as cluster:
        _begin(cluster, tmp_path, partition="hasty")
        _preempt(slurm, cluster)
        _until_it_says(cluster, "saving")
        _end(cluster, tmp_path)
        assert "half of eight" not in _lines(cluster)
        first, second = _runs(cluster)
        assert (first["outcome"], second["outcome"]) == ("PREEMPTED", "COMPLETED")
        assert first["exit_code"] != 0, "it did not leave by itself"
        (described,) = cluster.json("t", "describe", "1")
        assert described["trial"]["restarts"] == 0
        (kept,) = cluster.json("e", "list-checkpoints", "1")
        assert (kept["state"], kept["steps_completed"]) == ("COMPLETED", 7)


@contextmanager
def _serving(slurm: SlurmCluster, folder: Path, *, script: str, partition: str) -> Iterator[EmbeddedCluster]:
    """A cluster whose pool is a partition, and a project with a script."""
    project, home = folder / "project", folder / "home"
    project.mkdir()
    home.mkdir(mode=0o700)
    (project / "train.py").write_text(script)
    (project / "long.yaml").write_text(CONFIG.format(may_end=folder / "may-end"))
    conf = slurm.environment["SLURM_CONF"]
    settings = SETTINGS.format(directory=folder / "shared", conf=conf, partition=partition)
    (home / FILE_NAME).write_text(settings)
    with embedded(home, PATH=slurm.environment["PATH"]) as cluster:
        yield cluster


def _begin(cluster: EmbeddedCluster, folder: Path, *, partition: str) -> None:
    """Submits the project, and waits until its trial trains."""
    created = cluster.det("e", "create", "long.yaml", ".", cwd=folder / "project")
    assert "without effect" not in created.stdout + created.stderr
    _until_it_says(cluster, f"training on {partition}")


def _preempt(slurm: SlurmCluster, cluster: EmbeddedCluster) -> None:
    """Submits a job that takes all nodes, until the trial has another run."""
    client = SlurmClient(SlurmCommands(environment=slurm.environment, deadline_seconds=60.0))
    urgent = JobSpec(
        name=f"urgent-{uuid.uuid4().hex}",
        script="#!/bin/sh\nexec sleep 6000\n",
        nodes=NODES,
        output="/dev/null",
        options=("--partition=urgent", "--exclusive"),
    )
    asyncio.run(client.submit(urgent))
    try:
        wait_until(lambda: len(_runs(cluster)) == 2, what="another run", seconds=SECONDS, pause=1)
    finally:
        asyncio.run(client.cancel(urgent.name))


def _end(cluster: EmbeddedCluster, folder: Path) -> None:
    """Lets the trial end once it goes on, and waits until nothing is left of its runs."""
    _until_it_says(cluster, "continues with seven steps")
    (folder / "may-end").touch()
    cluster.det("e", "wait", "1", timeout=SECONDS)
    shared = folder / "shared"
    wait_until(lambda: not list(shared.iterdir()), what="run directories to be removed", seconds=SECONDS)


def _until_it_says(cluster: EmbeddedCluster, words: str) -> None:
    wait_until(lambda: words in _lines(cluster), what=words, seconds=SECONDS, pause=1)


def _lines(cluster: EmbeddedCluster) -> str:
    return cluster.det("t", "logs", "1", check=False).stdout


def _runs(cluster: EmbeddedCluster) -> list[dict[str, Any]]:
    (described,) = cluster.json("t", "describe", "1")
    runs: list[dict[str, Any]] = described["trial"]["runs"]
    return runs
