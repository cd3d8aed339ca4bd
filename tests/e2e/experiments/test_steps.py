"""How far trials are, how fast, and when they will be done, as people are told while they run."""

from __future__ import annotations

import json
from pathlib import Path

from support.clusters.embedded import EmbeddedCluster
from support.waiting import wait_until

SCRIPT = """
import pathlib
import threading
import resolute
from resolute import core

folder = pathlib.Path(resolute.get_cluster_info().trial.hparams["folder"])
pace = threading.Event()
with core.init() as context:
    for operation in context.searcher.operations():
        for step in range(1, 10_001):
            context.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
            if (folder / "end").exists():
                break
            pace.wait(0.05)
        operation.report_completed(1 / step)
"""


def test_a_running_trial_tells_its_steps_rate_and_end_and_keeps_its_last_steps(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    config = {
        "name": "steps",
        "entrypoint": "python3 train.py",
        "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 10_000}},
        "hyperparameters": {"folder": str(tmp_path)},
        "max_restarts": 0,
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    created = cluster.run("resolute", "experiment", "create", "config.yaml", ".", cwd=tmp_path)
    number = int(created.stdout.split("experiment ")[1].split()[0])

    def trial() -> dict[str, object]:
        (found,) = cluster.json("experiment", "list-trials", str(number))
        return dict(found)

    wait_until(lambda: trial()["estimated_end_time"], what="the end to be estimated")
    running = trial()
    assert 1 < float(str(running["reported_steps"])) < 10_000
    assert 0 < float(str(running["steps_per_second"])) < 25, "a step takes at least 0.05 s"
    assert running["run_start_time"]
    wait_until(
        lambda: cluster.json("experiment", "describe", str(number))[0]["experiment"]["estimated_end_time"],
        what="the experiment to tell the same",
    )
    whole = cluster.json("experiment", "describe", str(number))[0]["experiment"]
    assert 0 < float(str(whole["steps_per_second"])) < 25, "its only trial's"
    shown = cluster.run("resolute", "trial", "describe", str(running["id"])).stdout
    assert "steps/s, reported" in shown
    (tmp_path / "end").touch()
    cluster.run("resolute", "experiment", "wait", str(number))
    ended = trial()
    last = cluster.json("trial", "describe", str(ended["id"]), "--metrics-summary")[0]["metrics_summary"][0]
    assert ended["reported_steps"] == last["last_steps"], "nobody has to wait for the last steps"
    assert ended["estimated_end_time"] is None
    assert ended["run_start_time"] is None
    assert float(str(ended["run_seconds"])) > 0
