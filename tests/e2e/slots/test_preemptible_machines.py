"""A trial on machines that are taken away: by a kill without a word, by SIGTERM, and by their own notice."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from support.clusters.embedded import EmbeddedCluster
from support.daemons.metadata_server import metadata_server
from support.waiting import wait_until

from resolute.contracts.files.atomic_files import read_json
from resolute.contracts.run.directory import RunDirectory

SCRIPT = """
import json, sys, time
import determined as det

info = det.get_cluster_info()
step, leaves = 0, 0
with det.core.init() as core:
    if info.latest_checkpoint:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            step, leaves = json.loads((path / "state").read_text())

    def save():
        with core.checkpoint.store_path({"steps_completed": step}) as (path, _):
            (path / "state").write_text(json.dumps([step, leaves]))

    def train():
        global step
        step += 1
        core.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})

    op = next(iter(core.searcher.operations()))
    if not step:
        while step < 5:
            train()
            if step == 2:
                save()
        print("nothing more is saved", flush=True)
        time.sleep(600)
    while leaves < 2:
        train()
        time.sleep(0.05)
        if step % 7 == 0:
            print("training, left", leaves, flush=True)
        if core.preempt.should_preempt():
            leaves += 1
            save()
            sys.exit()
    core.train.report_validation_metrics(steps_completed=step, metrics={"loss": 0.5})
    save()
    op.report_completed(0.5)
"""
CONFIG = """
name: preemptible-machines
entrypoint: python3 train.py
hyperparameters: {}
searcher: {name: single, metric: loss, max_length: 1}
max_restarts: 0
resources: {preemptible: {metadata: {url: "URL", interval: 1}}}
"""


def test_every_way_to_lose_a_machine_is_a_preemption_and_says_how_many_steps_it_cost(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    with metadata_server() as machine:
        (tmp_path / "train.py").write_text(SCRIPT)
        (tmp_path / "config.yaml").write_text(CONFIG.replace("URL", machine.url))
        cluster.det("e", "create", "config.yaml", ".", cwd=tmp_path)
        number = str(cluster.json("e", "list", "--all")[0]["id"])
        (listed,) = wait_until(lambda: cluster.json("e", "list-trials", number), what="the trial", pause=0.5)
        trial = str(listed["id"])

        wait_until(lambda: "nothing more is saved" in logs(cluster, trial), what="run 1", pause=0.5)
        (pid,) = described(cluster, trial)["pids"]
        os.kill(pid, signal.SIGKILL)

        wait_until(lambda: "left 0" in logs(cluster, trial), what="run 2", pause=0.5)
        os.kill(
            supervisor_of(cluster, described(cluster, trial)["runs"][-1]["allocation_id"]), signal.SIGTERM
        )

        wait_until(lambda: "left 1" in logs(cluster, trial), what="run 3", pause=0.5)
        machine.status = 200
        wait_until(lambda: len(described(cluster, trial)["runs"]) == 4, what="run 4", pause=0.5)

        cluster.det("e", "wait", number, timeout=120)
        ended = described(cluster, trial)
        runs = [(run["outcome"], run.get("lost_steps")) for run in ended["runs"]]
        assert runs == [("PREEMPTED", 3), ("PREEMPTED", 0), ("PREEMPTED", 0), ("COMPLETED", None)]
        assert (ended["state"], ended["restarts"], ended["lost_steps"]) == ("COMPLETED", 0, 3)
        assert ended["runs"][0]["exit_code"] == 137

        told = cluster.run("resolute", "trial", "describe", trial).stdout
        assert (told.count("3 steps lost"), told.count("0 steps lost")) == (1, 2)
        assert "Lost steps" in cluster.run("resolute", "trial", "list", number).stdout
        assert "is about to be taken away" in logs(cluster, trial)


def described(cluster: EmbeddedCluster, trial: str) -> dict[str, Any]:
    said = cluster.run("resolute", "trial", "describe", trial, "--json").stdout
    return dict(json.loads(said)[0]["trial"])


def logs(cluster: EmbeddedCluster, trial: str) -> str:
    return cluster.det("t", "logs", trial).stdout


def supervisor_of(cluster: EmbeddedCluster, allocation: str) -> int:
    """The process that supervises an allocation, by its run directory."""
    (found,) = cluster.home.glob(f"**/*{allocation}*/**/{RunDirectory(Path()).supervisor_file.name}")
    content = read_json(found)
    assert content is not None
    return int(content["pid"])
