"""A more urgent experiment takes the slot of a patient one, which later continues where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.clusters.embedded import EmbeddedCluster, embedded
from support.waiting import wait_until

CONFIG = """
name: {name}
entrypoint: python3 train.py
environment: {{environment_variables: ["MAY_END={may_end}"]}}
hyperparameters: {{steps: {steps}}}
resources: {{priority: {priority}}}
searcher: {{name: single, metric: loss, max_length: {steps}}}
"""
STEPS = 30
"""Of the patient trial, which takes the last ten only when it may, so that it still trains when preempted."""
SCRIPT = """
import json, os, sys, time
import determined as det

info = det.get_cluster_info()
with det.core.init() as core:
    step = 0
    if info.latest_checkpoint:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            step = json.loads((path / "step").read_text())
        print("resumed at", step)
    for op in core.searcher.operations():
        while step < op.length:
            time.sleep(0.02)
            if step < 20 or os.path.exists(os.environ["MAY_END"]):
                step += 1
                core.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
            if core.preempt.should_preempt():
                with core.checkpoint.store_path({"steps_completed": step}) as (path, _):
                    (path / "step").write_text(json.dumps(step))
                sys.exit(0)
        op.report_completed(1 / step)
"""


def trial(cluster: EmbeddedCluster, experiment: int) -> dict[str, Any]:
    """What is listed of the trial; nothing until it is there."""
    trials = cluster.json("e", "list-trials", str(experiment))
    return dict(trials[0]) if trials else {}


def submit(cluster: EmbeddedCluster, folder: Path, *, name: str, priority: int, steps: int) -> None:
    config = CONFIG.format(name=name, priority=priority, steps=steps, may_end=folder.parent / "may-end")
    (folder / f"{name}.yaml").write_text(config)
    cluster.det("e", "create", f"{name}.yaml", ".", cwd=folder)


def test_urgent_experiment_takes_the_slot_of_a_patient_one(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    with embedded(tmp_path / "home", slots=1) as cluster:
        submit(cluster, project, name="patient", priority=80, steps=STEPS)
        wait_until(lambda: trial(cluster, 1).get("state") == "RUNNING", what="the patient trial to run")
        submit(cluster, project, name="urgent", priority=80, steps=3)
        # Until the scheduler's next pass a trial is said to wait behind others.
        waits = "needs 1 slot, 0 of 1 are free"
        wait_until(lambda: trial(cluster, 2).get("explanation") == waits, what="a reason to wait")
        listed = {entry["id"]: entry["explanation"] for entry in cluster.json("e", "list")}
        assert listed == {1: "", 2: waits}
        shown = cluster.det("e", "describe", "2").stdout.splitlines()
        assert ["Why it waits", waits] in [line.strip().split("  ", 1) for line in shown]
        assert [job["experiment_id"] for job in cluster.json("job", "list")] == [2, 1], (
            "one holds no slot yet"
        )
        assert cluster.det("e", "set", "weight", "2", "3").stdout.endswith("priority 80, weight 3\n")
        assert cluster.det("e", "set", "max-slots", "2", "1").stdout.endswith("weight 3, at most 1 slots\n")
        cluster.det("job", "update", "2", "--max-slots", "0")
        cluster.det("e", "set", "priority", "2", "10")
        cluster.det("e", "wait", "2", timeout=120)
        (tmp_path / "may-end").touch()
        cluster.det("e", "wait", "1", timeout=120)
        patient = cluster.json("t", "describe", "1", "--metrics")[0]
        outcomes = [run["outcome"] for run in patient["trial"]["runs"]]
        assert outcomes == ["PREEMPTED", "COMPLETED"]
        assert patient["trial"]["restarts"] == 0
        steps = [report["steps_completed"] for report in patient["metrics"]]
        assert steps == list(range(1, STEPS + 1)), "it went on where it was, with every step once"
