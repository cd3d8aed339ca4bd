"""A policy on the use of GPUs pauses a run that leaves them idle, and the run loses nothing by it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.planted_nvml import DEVICE, plant
from support.waiting import wait_until

SCRIPT = """
import pathlib, time
import determined as det

info = det.get_cluster_info()
with det.core.init() as core:
    step = 0
    if info.latest_checkpoint:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            step = int((path / "step").read_text())
    while not (pathlib.Path(info.trial.hparams["folder"]) / "end").exists():
        step += 1
        core.train.report_training_metrics(steps_completed=step, metrics={"loss": 1.0})
        if core.preempt.should_preempt():
            with core.checkpoint.store_path({"steps_completed": step}) as (path, _):
                (path / "step").write_text(str(step))
            break
        time.sleep(0.1)
"""


@pytest.fixture
def gpus(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """A cluster with one GPU that works for 25 % of the time."""
    driver = tmp_path / "driver"
    driver.mkdir()
    plant(driver)
    tool = driver / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\necho 'GPU 0: NVIDIA H200 (UUID: {DEVICE})'\n")
    tool.chmod(0o755)
    path = f"{driver}:{os.environ['PATH']}"
    with embedded(tmp_path / "home", slots=1, PATH=path, LD_LIBRARY_PATH=str(driver)) as cluster:
        yield cluster


def submit(cluster: EmbeddedCluster, folder: Path, policy: dict[str, Any]) -> int:
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    config = {
        "name": "idle",
        "entrypoint": "python3 train.py",
        "searcher": {"name": "single", "metric": "loss"},
        "hyperparameters": {"folder": str(folder)},
        "max_restarts": 0,
        "utilization_policy": policy,
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    created = cluster.det("e", "create", "config.yaml", ".", cwd=folder)
    return int(created.stdout.split("experiment ")[1].split()[0])


def trial_of(cluster: EmbeddedCluster, experiment: int) -> dict[str, Any]:
    rows = wait_until(lambda: cluster.json("e", "list-trials", str(experiment)), what="the trial")
    (row,) = rows
    return dict(cluster.json("t", "describe", str(row["id"]))[0]["trial"])


def test_an_idle_run_is_paused_and_goes_on_where_it_was(gpus: EmbeddedCluster, tmp_path: Path) -> None:
    number = submit(gpus, tmp_path / "project", {"gpu_below": 30, "for": 10, "then": "pause"})
    wait_until(lambda: trial_of(gpus, number)["state"] == "PAUSED", what="the pause", seconds=120)
    (run,) = trial_of(gpus, number)["runs"]
    assert run["outcome"] == "PREEMPTED"
    assert run["idle"].startswith("its GPUs worked for 25.0 % of the last 1")
    assert run["idle"].endswith(" seconds, below the limit of 30 %")
    assert "Idle GPUs" in gpus.det("t", "describe", str(trial_of(gpus, number)["id"])).stdout
    (tmp_path / "project" / "end").touch()
    gpus.det("e", "activate", str(number))
    gpus.det("e", "wait", str(number), timeout=120)
    trial = trial_of(gpus, number)
    assert (trial["state"], trial["restarts"]) == ("COMPLETED", 0)
    assert trial["runs"][0]["lost_steps"] == 0


def test_a_run_that_works_enough_is_left_alone(gpus: EmbeddedCluster, tmp_path: Path) -> None:
    number = submit(gpus, tmp_path / "project", {"gpu_below": 20, "over": 10, "then": "end"})
    wait_until(lambda: (trial_of(gpus, number)["reported_steps"] or 0) > 250, what="25 seconds", seconds=120)
    (tmp_path / "project" / "end").touch()
    gpus.det("e", "wait", str(number), timeout=120)
    trial = trial_of(gpus, number)
    assert (trial["state"], trial["runs"][0]["idle"]) == ("COMPLETED", "")


def test_machines_are_measured_although_nobody_asked_for_it(gpus: EmbeddedCluster, tmp_path: Path) -> None:
    number = submit(gpus, tmp_path / "project", {"gpu_below": 5, "for": 600, "then": "warn"})
    trial = str(trial_of(gpus, number)["id"])
    wait_until(lambda: gpus.json("t", "machine", trial), what="the first message", seconds=120)
    (node,) = gpus.json("top")["nodes"]
    assert (node["trials"], node["gpu"], node["celsius"]) == ([int(trial)], 25.0, 88.0)
    assert 0 <= node["cpu"] <= 100
    assert 0 < node["memory"] < 100
    (tmp_path / "project" / "end").touch()
    gpus.det("e", "wait", str(number), timeout=120)
    # The last message comes with the end of the run, and none of it is among the reports of the script.
    (usage,) = gpus.json("t", "machine", trial)
    names = {"cpu", "memory", f"{DEVICE}.gpu_util", f"{DEVICE}.gpu_power", f"{DEVICE}.gpu_temperature"}
    assert names <= set(usage["series"])
    assert all(len(values) == len(usage["seconds"]) >= 2 for values in usage["series"].values())
    with gpus.client() as client:
        assert {report.group for report in client.get_trial(int(trial)).iter_metrics()} == {"training"}
