"""A whole cluster whose trials are jobs of a real Slurm."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

from support.clusters.embedded import EmbeddedCluster, embedded
from support.slurm import NODES, SlurmCluster
from support.waiting import wait_until

from resolute_experiments.resources.settings import FILE_NAME
from resolute_experiments.resources.slurm.client import JobSpec, SlurmClient
from resolute_experiments.resources.slurm.commands import SlurmCommands

SECONDS = 240.0
SETTINGS = """
resource_pools: [{{pool_name: cheap, engine: hpc, partition: spot, slot_type: cpu}}]
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


def test_preempted_trial_goes_on_from_its_checkpoint_without_a_restart(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    client = SlurmClient(SlurmCommands(environment=slurm.environment, deadline_seconds=60.0))
    urgent = JobSpec(
        name=f"urgent-{uuid.uuid4().hex}",
        script="#!/bin/sh\nexec sleep 6000\n",
        nodes=NODES,
        output="/dev/null",
        options=("--partition=urgent", "--exclusive"),
    )
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir(mode=0o700)
    (project / "train.py").write_text(SCRIPT)
    (project / "long.yaml").write_text(CONFIG.format(may_end=tmp_path / "may-end"))
    conf = slurm.environment["SLURM_CONF"]
    (home / FILE_NAME).write_text(SETTINGS.format(directory=tmp_path / "shared", conf=conf))
    with embedded(home, PATH=slurm.environment["PATH"]) as cluster:
        # The command of docs/engines.md.
        seen = cluster.run("resolute", "doctor", "--nodes").stdout
        assert f"nodes of pool cheap: all {NODES} see {tmp_path / 'shared'}" in seen
        created = cluster.det("e", "create", "long.yaml", ".", cwd=project)
        assert "without effect" not in created.stdout + created.stderr
        wait_until(lambda: "training on spot" in _lines(cluster), what="the trial", seconds=SECONDS, pause=1)
        asyncio.run(client.submit(urgent))
        try:
            wait_until(lambda: len(_runs(cluster)) == 2, what="another run", seconds=SECONDS, pause=1)
        finally:
            asyncio.run(client.cancel(urgent.name))
        wait_until(
            lambda: "continues with seven steps" in _lines(cluster), what="it", seconds=SECONDS, pause=1
        )
        (tmp_path / "may-end").touch()
        cluster.det("e", "wait", "1", timeout=SECONDS)
        assert [each["outcome"] for each in _runs(cluster)] == ["PREEMPTED", "COMPLETED"]
        wait_until(
            lambda: not list((tmp_path / "shared").iterdir()),
            what="run directories to be removed",
            seconds=SECONDS,
        )


def _lines(cluster: EmbeddedCluster) -> str:
    return cluster.det("t", "logs", "1", check=False).stdout


def _runs(cluster: EmbeddedCluster) -> list[dict[str, Any]]:
    (described,) = cluster.json("t", "describe", "1")
    runs: list[dict[str, Any]] = described["trial"]["runs"]
    return runs
