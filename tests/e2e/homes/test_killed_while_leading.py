"""The control plane is killed the moment it has promised something: the next one keeps the promise."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.harness.cluster_processes import Role, processes_of
from support.clusters.embedded import EmbeddedCluster, embedded
from support.waiting import wait_until

from resolute.client.connection.session import Session
from resolute.client.remote.experiments import Experiments, Submission
from resolute.client.submission.packing import pack
from resolute.errors import UnavailableError

CONFIG = """
name: promise
entrypoint: python3 train.py
environment: {{environment_variables: ["MAY_END={may_end}"]}}
searcher: {{name: single, metric: loss, max_length: 40}}
"""
SCRIPT = """
import json, os, sys, time
import determined as det

info = det.get_cluster_info()
with det.core.init() as core:
    step = 0
    if info.latest_checkpoint:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            step = json.loads((path / "step").read_text())
    for op in core.searcher.operations():
        while step < op.length:
            time.sleep(0.02)
            if core.preempt.should_preempt():
                with core.checkpoint.store_path({"steps_completed": step}) as (path, _):
                    (path / "step").write_text(json.dumps(step))
                sys.exit(0)
            if step < 20 or os.path.exists(os.environ["MAY_END"]):
                step += 1
                core.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
        op.report_completed(1 / step)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    return folder


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home") / "h") as cluster:
        yield cluster


def may_end(project: Path) -> Path:
    """Trials end once it is there."""
    return project.parent / f"{project.name}-may-end"


def create(cluster: EmbeddedCluster, project: Path, *, request_id: str) -> int:
    """Submits until somebody answers, and returns the experiment's number."""

    def attempt() -> int:
        try:
            with Session.find(environment=cluster.variables()) as session, pack(project) as archive:
                config = CONFIG.format(may_end=may_end(project))
                key = str(uuid.uuid5(uuid.NAMESPACE_OID, request_id))
                submission = Submission(config=config, request_id=key)
                return Experiments(session).create(submission, archive).experiment.id
        except UnavailableError:
            return 0

    return wait_until(attempt, what="an answer to a submission")


def training(cluster: EmbeddedCluster, project: Path, *, request_id: str) -> int:
    """Submits an experiment and waits until its trial trains."""
    number = create(cluster, project, request_id=request_id)
    wait_until(lambda: steps(cluster, number), what="some steps")
    return number


def state(cluster: EmbeddedCluster, number: int) -> str:
    return str(cluster.json("e", "describe", str(number))[0]["experiment"]["state"])


def the_trial(cluster: EmbeddedCluster, number: int) -> int:
    (entry,) = cluster.json("e", "list-trials", str(number))
    return int(entry["id"])


def described(cluster: EmbeddedCluster, number: int) -> dict[str, Any]:
    return dict(cluster.json("t", "describe", str(the_trial(cluster, number)), "--metrics")[0])


def steps(cluster: EmbeddedCluster, number: int) -> list[int]:
    if not cluster.json("e", "list-trials", str(number)):
        return []
    return [report["steps_completed"] for report in described(cluster, number)["metrics"]]


def trial_processes(cluster: EmbeddedCluster) -> list[int]:
    found = processes_of(cluster.home)
    return [process.identity.pid for process in found if process.role is not Role.CONTROL_PLANE]


def restart(cluster: EmbeddedCluster) -> None:
    cluster.kill()
    cluster.up()


@pytest.mark.sampled(1, group="control planes killed while leading")
def test_pause_and_activate_outlive_the_control_plane(running: EmbeddedCluster, project: Path) -> None:
    number = training(running, project, request_id="pause")
    running.det("e", "pause", str(number))
    restart(running)
    wait_until(lambda: not trial_processes(running), what="the trial to leave")
    assert state(running, number) == "PAUSED"
    assert len(described(running, number)["trial"]["runs"]) == 1
    running.det("e", "activate", str(number))
    may_end(project).touch()
    restart(running)
    running.det("e", "wait", str(number), timeout=120)
    outcomes = [run["outcome"] for run in described(running, number)["trial"]["runs"]]
    assert outcomes == ["PREEMPTED", "COMPLETED"]
    assert steps(running, number) == list(range(1, 41)), "it went on where it was, with every step once"


@pytest.mark.sampled(1, group="control planes killed while leading")
def test_cancellation_outlives_the_control_plane(running: EmbeddedCluster, project: Path) -> None:
    number = training(running, project, request_id="cancel")
    running.det("e", "cancel", str(number))
    restart(running)
    wait_until(lambda: state(running, number) == "CANCELED", what="the end of the experiment")
    assert not trial_processes(running)
    assert described(running, number)["trial"]["latest_checkpoint"], "it could still checkpoint"


@pytest.mark.sampled(1, group="control planes killed while leading")
def test_a_kill_outlives_the_control_plane(running: EmbeddedCluster, project: Path) -> None:
    number = training(running, project, request_id="kill")
    running.det("e", "kill", str(number))
    restart(running)
    wait_until(lambda: state(running, number) == "CANCELED", what="the end of the experiment")
    wait_until(lambda: not trial_processes(running), what="the end of its processes")


@pytest.mark.sampled(1, group="control planes killed while leading")
def test_a_submission_during_restarts_creates_one_experiment(running: EmbeddedCluster, project: Path) -> None:
    may_end(project).touch()
    before = len(running.json("e", "list"))
    numbers: list[int] = []
    clients = [
        threading.Thread(target=lambda: numbers.append(create(running, project, request_id="again")))
        for _ in range(3)
    ]
    for client in clients:
        client.start()
    restart(running)
    for client in clients:
        client.join()
    restart(running)
    numbers.append(create(running, project, request_id="again"))
    assert len(set(numbers)) == 1
    assert len(running.json("e", "list")) == before + 1
    running.det("e", "wait", str(numbers[0]), timeout=120)
    assert state(running, numbers[0]) == "COMPLETED"
