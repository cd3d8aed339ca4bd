"""Commands and TensorBoard run on the cluster as tasks: beside its experiments, and not among them."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

from support.clusters.embedded import EmbeddedCluster
from support.waiting import wait_until

TRAIN = """
import determined as det

with det.core.init() as core:
    for op in core.searcher.operations():
        for step in range(1, op.length + 1):
            core.train.report_training_metrics(step, {"loss": 1 / step})
        core.train.report_validation_metrics(op.length, {"loss": 1 / op.length})
        op.report_completed(1 / op.length)
"""
CONFIG = """
name: shown
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 3}
"""


def number(started: str) -> str:
    """The number of a task, of what its start printed."""
    (line,) = (line for line in started.splitlines() if line.startswith("Started task "))
    return line.rpartition(" ")[2]


def listed(cluster: EmbeddedCluster, group: str) -> dict[int, dict[str, Any]]:
    """Tasks by their numbers."""
    return {task["id"]: task for task in cluster.json(group, "list")}


def lines_of_its_run(cluster: EmbeddedCluster, group: str, task: str) -> str:
    """The log of a task, of its only run alone."""
    trial = cluster.json("e", "list-trials", task)[0]["id"]
    (run,) = cluster.json("t", "describe", str(trial))[0]["trial"]["runs"]
    return cluster.det(group, "logs", task, "--allocation-id", run["allocation_id"]).stdout


def test_a_command_runs_on_slots_and_is_no_experiment(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    (tmp_path / "word.txt").write_text("from the directory")
    before = len(cluster.json("e", "list", "--all"))
    said = cluster.det(
        "command", "run", "-c", str(tmp_path), "--config", "resources.slots=2",
        "cat word.txt; echo $((20 + 22)); echo slots: $(python3 -c 'import determined as det;"
        " print(len(det.get_cluster_info().slot_ids))')",
        timeout=120,
    ).stdout  # fmt: skip
    assert all(words in said for words in ("from the directory", "42", "slots: 2", "COMPLETED")), said
    task = number(said)
    assert len(cluster.json("e", "list", "--all")) == before
    shown = listed(cluster, "cmd")[int(task)]
    assert shown["state"] == "COMPLETED"
    assert shown["kind"] == "COMMAND"
    assert shown["description"].startswith("Command (cat word.txt")
    assert shown["warning"] == "", "nobody misses a metric"
    assert "42" in lines_of_its_run(cluster, "command", task)
    assert "max_restarts: 0" in cluster.det("cmd", "config", task).stdout
    failed = cluster.run(
        "det", "command", "run", "--", "python3", "-c", "import sys; sys.exit(3)", check=False
    )
    assert failed.returncode == 1
    assert "ERROR: every trial failed" in failed.stdout


def test_a_command_knows_that_it_is_no_trial(cluster: EmbeddedCluster) -> None:
    script = (
        "import os, resolute; info = resolute.get_cluster_info(); context = resolute.core.init(); "
        "print('is', info.task_type, os.environ['DET_TASK_TYPE'], 'DET_TRIAL_ID' in os.environ)"
    )
    said = cluster.det("command", "run", "--", "python3", "-c", script)
    assert "is COMMAND COMMAND False" in said.stdout


def test_a_command_is_killed_and_only_a_command(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    task = number(cluster.det("command", "run", "-d", "echo begun; sleep 600").stdout)
    wait_until(
        lambda: "begun" in cluster.run("det", "cmd", "logs", task, check=False).stdout, what="the command"
    )
    cluster.det("cmd", "set", "priority", task, "7")
    assert {job["experiment_id"]: job["priority"] for job in cluster.json("job", "list")}[int(task)] == 7
    assert (
        "is no TensorBoard but a command"
        in cluster.run("det", "tensorboard", "kill", task, check=False).stderr
    )
    cluster.det("cmd", "kill", task)
    wait_until(
        lambda: listed(cluster, "cmd")[int(task)]["state"] == "CANCELED", what="the end of the command"
    )
    again = cluster.run("det", "cmd", "kill", "99999", check=False)
    assert again.returncode == 1
    assert cluster.run("det", "cmd", "kill", "-f", "99999").returncode == 0


def test_tensorboard_shows_an_experiment_until_it_is_killed(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "c.yaml").write_text(CONFIG)
    created = cluster.det("e", "create", "c.yaml", ".", "-f", cwd=tmp_path, timeout=120).stdout
    experiment = created.split("Created experiment ")[1].split()[0]
    said = cluster.det("tensorboard", "start", experiment, timeout=400).stdout
    url = said.split("TensorBoard is running at ")[1].strip()

    def tags() -> Any:
        with urllib.request.urlopen(f"{url}data/plugin/scalars/tags", timeout=60) as answer:
            return json.loads(answer.read())

    wait_until(lambda: any("loss" in tag for found in tags().values() for tag in found), what="the metrics")
    task = number(said)
    assert (
        listed(cluster, "tensorboard")[int(task)]["description"] == f"TensorBoard (experiment {experiment})"
    )
    assert cluster.det("tensorboard", "open", task).stdout == f"TensorBoard is running at {url}\n"
    cluster.det("tensorboard", "kill", task)
    wait_until(
        lambda: listed(cluster, "tensorboard")[int(task)]["state"] == "CANCELED",
        what="the end of TensorBoard",
    )
    ended = cluster.run("det", "tensorboard", "open", task, check=False)
    assert "has ended" in ended.stderr


def test_tensorboard_leaves_when_nobody_looks(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "c.yaml").write_text(CONFIG)
    created = cluster.det("e", "create", "c.yaml", ".", "-f", cwd=tmp_path, timeout=120).stdout
    experiment = created.split("Created experiment ")[1].split()[0]
    said = cluster.det("tensorboard", "start", "-d", experiment, "--config", "idle_timeout=0").stdout
    task = number(said)
    wait_until(
        lambda: listed(cluster, "tensorboard")[int(task)]["state"] == "COMPLETED",
        what="the end of TensorBoard",
    )
    assert "no request for" in lines_of_its_run(cluster, "tensorboard", task)
