"""A trial whose loss spikes goes back to its last good checkpoint and leaves out what spoils it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from support.clusters.embedded import EmbeddedCluster
from support.waiting import wait_until

from resolute.api.metrics.v1.metrics_service_pb2 import ListReportsRequest

POISON = 30
"""The batch after which every loss is NaN."""
CORE = """
import json, math, pathlib, time
import determined as det

info = det.get_cluster_info()
spoils = info.trial.hparams["spoils"]
with det.core.init() as core:
    step, spoilt = 0, False
    if info.latest_checkpoint:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            step, spoilt = json.loads((path / "state").read_text())
    while step < 60:
        skipped = any(first <= step < end for first, end in info.trial.skipped_batches)
        spoilt = spoilt or (step in spoils and not skipped)
        step += 1
        if not skipped:
            loss = math.nan if spoilt else 1 / step
            core.train.report_training_metrics(steps_completed=step, metrics={"loss": loss})
        if step % 10 == 0:
            with core.checkpoint.store_path({"steps_completed": step}) as (path, _):
                (path / "state").write_text(json.dumps([step, spoilt]))
    while spoilt and not core.preempt.should_preempt() and info.trial.hparams["waits"]:
        time.sleep(0.1)
"""
TRIAL = """
import pathlib, time
import torch
from determined import pytorch


class Spoilt(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.001))
        folder = pathlib.Path(context.get_hparam("folder"))
        self.trained = (folder / f"run-{context._core.info.trial._trial_run_id}").open("a", buffering=1)

    def build_training_data_loader(self):
        records = torch.arange(60, dtype=torch.float32)
        records[30] = torch.nan
        return pytorch.DataLoader([(index, record) for index, record in enumerate(records)], batch_size=1)

    def build_validation_data_loader(self):
        return pytorch.DataLoader([0.0], batch_size=1)

    def train_batch(self, batch, epoch_idx, batch_idx):
        index, record = batch
        self.trained.write(f"{int(index)}\\n")
        loss = (self.model(record.reshape(1, 1) / 60) ** 2).sum()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        while batch_idx > 45 and loss.isnan():
            time.sleep(0.1)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"validation_loss": 0.0}
"""


def submit(cluster: EmbeddedCluster, folder: Path, *, code: str, config: dict[str, Any]) -> int:
    folder.mkdir()
    (folder / "model_def.py").write_text(code)
    whole = {"name": "guarded", "max_restarts": 0, **config}
    (folder / "config.yaml").write_text(json.dumps(whole))
    created = cluster.det("e", "create", "config.yaml", ".", cwd=folder)
    return int(created.stdout.split("experiment ")[1].split()[0])


def core_config(*, spoils: list[int], waits: bool = True, **guard: Any) -> dict[str, Any]:
    return {
        "entrypoint": "python3 model_def.py",
        "searcher": {"name": "single", "metric": "loss"},
        "hyperparameters": {"spoils": spoils, "waits": waits},
        "guard": {"metric": "loss", **guard},
        # They are committed faster than reports are judged.
        "checkpoint_storage": {"save_trial_latest": 100},
    }


def trial_of(cluster: EmbeddedCluster, experiment: int) -> dict[str, Any]:
    (row,) = cluster.json("e", "list-trials", str(experiment))
    return dict(cluster.json("t", "describe", str(row["id"]))[0]["trial"])


def test_a_trial_goes_back_and_both_branches_of_its_metrics_stay(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    config = core_config(spoils=[POISON], skip_batches=5)
    number = submit(cluster, tmp_path / "project", code=CORE, config=config)
    cluster.det("e", "wait", str(number), timeout=120)
    trial = trial_of(cluster, number)
    assert (trial["state"], trial["restarts"]) == ("COMPLETED", 0)
    first, second = trial["runs"]
    assert first["outcome"] == "PREEMPTED"
    assert first["guard"] == (
        "loss is nan at step 31: back to the last checkpoint until step 30, 5 batches skipped"
    )
    assert second["guard"] == ""
    reported = {True: set[tuple[int, int, bool]](), False: set[tuple[int, int, bool]]()}
    for superseded, found in reported.items():
        with cluster.client() as client:
            request = ListReportsRequest(
                trial_id=trial["uuid"], groups=["training"], include_superseded=superseded, page_size=1000
            )
            for report in client._services.metrics._stub.ListReports(request).reports:
                loss = report.metrics["loss"].double_value
                found.add((report.run, report.steps, math.isfinite(loss)))
    good = {(1, step, True) for step in range(1, 31)} | {(2, step, True) for step in range(36, 61)}
    assert {report for report in reported[False] if report[2]} == good
    assert reported[False] - good <= {(1, step, False) for step in range(31, 37)}
    bad = reported[True] - good
    assert (1, POISON + 1, False) in bad
    assert bad <= {(1, step, False) for step in range(POISON + 1, 61)}, "the old branch, as far as it came"
    assert "guard: loss is nan at step 31" in cluster.det("explain", "trial", str(trial["id"])).stdout


def test_a_guard_judges_also_what_was_reported_just_before_the_end(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    config = core_config(spoils=[58], waits=False, skip_batches=5)
    number = submit(cluster, tmp_path / "project", code=CORE, config=config)
    cluster.det("e", "wait", str(number), timeout=120)
    trial = trial_of(cluster, number)
    assert (trial["state"], len(trial["runs"])) == ("COMPLETED", 2)


def test_a_trial_that_went_back_as_often_as_it_may_waits_for_a_person(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    config = core_config(spoils=[POISON, 45], at_most=1, skip_batches=5)
    number = submit(cluster, tmp_path / "project", code=CORE, config=config)

    def paused() -> bool:
        rows = cluster.json("e", "list-trials", str(number))
        return [row["state"] for row in rows] == ["PAUSED"]

    wait_until(paused, what="the pause", seconds=120)
    _, second = trial_of(cluster, number)["runs"]
    assert second["guard"].endswith("; the experiment is paused, for the trial has gone back 1 times already")
    cluster.det("e", "activate", str(number))
    cluster.det("e", "wait", str(number), timeout=120)
    assert trial_of(cluster, number)["state"] == "COMPLETED"


def test_a_warning_changes_nothing(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    config = core_config(spoils=[POISON], waits=False, then="warn")
    number = submit(cluster, tmp_path / "project", code=CORE, config=config)
    cluster.det("e", "wait", str(number), timeout=120)
    (run,) = trial_of(cluster, number)["runs"]
    assert run["guard"].startswith("loss is nan at step ")


def test_a_spike_of_one_report_is_shown_although_good_ones_follow(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    code = CORE.replace("spoilt = spoilt or (step in spoils and not skipped)", "spoilt = step in spoils")
    assert code != CORE
    config = core_config(spoils=[POISON], waits=False, then="warn")
    number = submit(cluster, tmp_path / "project", code=code, config=config)
    cluster.det("e", "wait", str(number), timeout=120)
    (run,) = trial_of(cluster, number)["runs"]
    assert run["guard"] == f"loss is nan at step {POISON + 1}"


@pytest.mark.timeout(300)
def test_a_pytorch_trial_leaves_exactly_these_batches_out(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    project = tmp_path / "project"
    config = {
        "entrypoint": "model_def:Spoilt",
        "searcher": {"name": "single", "metric": "validation_loss", "max_length": {"batches": 60}},
        "hyperparameters": {"global_batch_size": 1, "folder": str(project)},
        "scheduling_unit": 1,
        "min_checkpoint_period": {"batches": 20},
        "guard": {"metric": "loss", "skip_batches": 5},
    }
    number = submit(cluster, project, code=TRIAL, config=config)
    cluster.det("e", "wait", str(number), timeout=240)
    assert trial_of(cluster, number)["state"] == "COMPLETED"
    trained = [[int(line) for line in (project / f"run-{run}").read_text().split()] for run in (1, 2)]
    # It was ended somewhere between the bad report and where it waits for that.
    assert trained[0] == list(range(len(trained[0])))
    assert POISON < len(trained[0]) <= 47
    assert trained[1] == [*range(20, 26), *range(31, 60)], "the bad report was that of step 31"
