"""The control plane is killed during a search: trials continue, nothing is lost, nothing happens twice."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.waiting import wait_until

from resolute.api.searcher.v1 import searcher_service_pb2, searcher_service_pb2_grpc
from resolute.rpc.channel import open_channel

CONFIG = """
name: slow-search
entrypoint: python3 train.py
hyperparameters: {x: {type: double, minval: 0, maxval: 1}}
reproducibility: {experiment_seed: 3}
searcher: {name: adaptive_asha, metric: loss, max_length: 16, max_trials: 8, max_concurrent_trials: 2}
"""
SCRIPT = """
import json, sys, time
import determined as det

info = det.get_cluster_info()
with det.core.init() as core:
    step = 0
    if info.latest_checkpoint:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            step = json.loads((path / "step").read_text())

    def save():
        with core.checkpoint.store_path({"steps_completed": step}) as (path, _):
            (path / "step").write_text(json.dumps(step))

    for op in core.searcher.operations():
        while step < op.length:
            step += 1
            time.sleep(0.15)
            core.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
            if core.preempt.should_preempt():
                save()
                sys.exit(0)
        loss = (info.trial.hparams["x"] + 1) / step
        core.train.report_validation_metrics(steps_completed=step, metrics={"loss": loss})
        save()
        op.report_completed(loss)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "train.py").write_text(SCRIPT)
    return folder


def running_pids(cluster: EmbeddedCluster) -> dict[int, int]:
    """Processes of running trials by trial, as the service knows them."""
    with sqlite3.connect(f"file:{cluster.home}/databases/experiments.sqlite?mode=ro", uri=True) as connection:
        rows = connection.execute(
            "SELECT t.number, c.pid FROM trials t JOIN containers c ON c.allocation_id = t.id || '.' || t.run"
            " WHERE t.state = 'RUNNING' AND c.pid > 0 AND NOT c.exited"
        ).fetchall()
    return {number: pid for number, pid in rows if Path(f"/proc/{pid}").exists()}


def two_of(pids: dict[int, int]) -> dict[int, int]:
    """The processes once there are two; nothing before."""
    return pids if len(pids) == 2 else {}


def restarts(cluster: EmbeddedCluster) -> list[int]:
    return [entry["restarts"] for entry in cluster.json("e", "list-trials", "1")]


def search_of(cluster: EmbeddedCluster, experiment: str) -> searcher_service_pb2.ReplaySearchResponse:
    content = json.loads((cluster.home / "endpoint.json").read_text())
    token = Path(content["token_path"]).read_text().strip()
    with open_channel(content["address"], token=lambda: token) as channel:
        stub = searcher_service_pb2_grpc.SearcherServiceStub(channel)
        return stub.ReplaySearch(searcher_service_pb2.ReplaySearchRequest(search_id=experiment))


def reported_steps(cluster: EmbeddedCluster, trial: int) -> list[int]:
    """Steps of the training reports of a trial, in the order in which they are kept."""
    described: Any = cluster.json("t", "describe", str(trial), "--metrics")[0]
    return [report["steps_completed"] for report in described["metrics"] if report["group"] == "training"]


def test_killed_control_plane_adopts_running_trials_and_loses_nothing(tmp_path: Path, project: Path) -> None:
    with embedded(tmp_path / "home") as cluster:
        cluster.det("e", "create", "config.yaml", ".", cwd=project)
        before = wait_until(lambda: two_of(running_pids(cluster)), what="two trials")
        cluster.kill()
        assert all(Path(f"/proc/{pid}").exists() for pid in before.values()), (
            "trials outlive the control plane"
        )
        cluster.up()
        after = running_pids(cluster)
        for trial in before.keys() & after.keys():
            assert after[trial] == before[trial], "an adopted trial keeps its process"
        finished = cluster.det("e", "wait", "1", timeout=180)
        assert finished.returncode == 0
        assert set(restarts(cluster)) == {0}
        for trial in range(1, 9):
            steps = reported_steps(cluster, trial)
            assert steps == list(range(1, len(steps) + 1)), f"trial {trial}: every report once, none missing"
        replayed = search_of(cluster, cluster.json("e", "describe", "1")[0]["experiment"]["uuid"])
        assert replayed.equal, replayed.detail


def test_second_control_plane_on_one_home_is_refused(tmp_path: Path) -> None:
    with embedded(tmp_path / "home") as cluster:
        second = cluster.run("resolute", "up", check=False)
        assert second.returncode != 0
        assert "another `resolute up`" in second.stderr
        assert "RESOLUTE_HOME" in second.stderr
        assert cluster.run("resolute", "status").returncode == 0
