"""What `det` prints of experiments, trials and checkpoints; and that every command has been tried."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from wire.cli.conftest import CommandLine
from wire.cli.determined.output import OURS, SERVED, TRAINED, Case, check
from wire.cli.scripted import ScriptedCluster

from resolute.api.experiments.v1 import experiment_pb2, run_pb2, trial_pb2
from resolute.cli.determined.renderings import RENDERINGS
from resolute.cli.determined.spelling import size

ROOT = Path(__file__).parents[4]


@pytest.fixture
def trained(cluster: ScriptedCluster) -> trial_pb2.Trial:
    """A completed experiment of one trial with a validation, a checkpoint and a line of log."""
    state = cluster.state
    experiment = state.add_experiment(searcher_metric="loss", searcher_name="single")
    trial = state.add_trial(experiment, hparams={"lr": 0.1}, runs=[run_pb2.Run(run=1, allocation_id="a.1")])
    state.add_report(trial, steps=10, group="validation", loss=0.5)
    state.add_checkpoint(trial, {"model": b"weights"}, steps=10)
    state.add_line(trial, "step 10")
    state.end(experiment, experiment_pb2.EXPERIMENT_STATE_COMPLETED)
    return trial


@pytest.mark.parametrize("case", TRAINED, ids=lambda case: f"{case.line} {case.path}")
def test_experiments_and_trials(trained: trial_pb2.Trial, determined: CommandLine, case: Case) -> None:
    check(determined, case)


def test_each_documented_command_with_json_or_csv_has_a_rendering() -> None:
    page = (ROOT / "docs/from-determined.md").read_text()
    same = page.partition("### The same")[2]
    listed = re.findall(r"^\| `det ([a-z -]+)` \| .*--(?:json|csv)`", same, re.MULTILINE)
    assert len(listed) > 30
    assert [name for name in listed if name not in RENDERINGS and name not in OURS] == []


def test_each_rendering_is_tried() -> None:
    tried = {case.line for case in (*TRAINED, *SERVED)}
    written = {name for name in RENDERINGS if not any(line.startswith(name) for line in tried)}
    assert written <= {
        "agent disable",
        "checkpoint describe",
        "command logs",
        "model create",
        "model register-version",
        "project create",
        "project edit",
        "tensorboard logs",
        "token create",
        "token describe",
        "token edit",
        "version",
        "workspace create",
        "workspace edit",
    }


def test_states_are_spelt_as_scripts_expect(trained: trial_pb2.Trial, determined: CommandLine) -> None:
    (described,) = json.loads(determined("e", "describe", "1", "--json").out)
    experiment = described["experiment"]
    assert (experiment["state"], experiment["numTrials"]) == ("STATE_COMPLETED", 1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", experiment["startTime"])
    listed = next(csv.DictReader(io.StringIO(determined("e", "list", "--csv").out)))
    assert listed["State"] == "COMPLETED"
    assert json.loads(determined("trial", "describe", "1", "--json").out)["trial"]["id"] == 1


def test_tables_leave_the_prefix_of_states_out(trained: trial_pb2.Trial, determined: CommandLine) -> None:
    for line in ("e describe 1", "t describe 1", "e list-checkpoints 1"):
        printed = determined(*line.split(), "--csv").out
        assert "COMPLETED" in printed, line
        assert "STATE_" not in printed, line


def test_metrics_have_a_column_each(
    trained: trial_pb2.Trial, cluster: ScriptedCluster, determined: CommandLine, tmp_path: Path
) -> None:
    cluster.state.add_report(trained, steps=5, group="training", loss=2.5, speed=7.0)
    determined("e", "describe", "1", "--metrics", "--outdir", str(tmp_path / "out"))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "experiments.csv",
        "trials.csv",
        "workloads.csv",
    ]
    with (tmp_path / "out/workloads.csv").open() as file:
        first, second = csv.DictReader(file)
    assert (first["# of Batches"], first["State"]) == ("5", "")
    assert (first["Training Metric: loss"], first["Training Metric: speed"]) == ("2.5", "7.0")
    assert (second["Validation Metric: loss"], second["Training Metric: loss"]) == ("0.5", "")
    assert (second["Validation State"], second["Checkpoint State"]) == ("COMPLETED", "COMPLETED")


def test_a_step_has_the_state_of_what_came_first_and_reports_are_read_once(
    trained: trial_pb2.Trial, cluster: ScriptedCluster, determined: CommandLine
) -> None:
    cluster.state.add_report(trained, steps=20, group="training", loss=0.25)
    cluster.state.reports[trained.trial_id][-1].time.FromSeconds(1_700_000_000)
    cluster.state.add_checkpoint(trained, {}, steps=20).commit_time.FromSeconds(1_700_000_060)
    cluster.state.add_checkpoint(trained, {}, steps=30).commit_time.FromSeconds(1_700_000_120)
    passes = cluster.state.faults["ListReports"] = [None] * 9
    printed = determined("e", "describe", "1", "--metrics", "--csv").out.partition("Workloads:\n")[2]
    _, trained_first, kept_alone = csv.DictReader(io.StringIO(printed))
    assert trained_first["Training Metric: loss"] == "0.25"
    assert (trained_first["State"], trained_first["Checkpoint State"]) == ("", "COMPLETED")
    assert (kept_alone["State"], kept_alone["Checkpoint State"]) == ("COMPLETED", "COMPLETED")
    assert len(passes) == 8, "one call read them"


def test_workloads_of_a_trial_are_told_one_by_one(trained: trial_pb2.Trial, determined: CommandLine) -> None:
    def of(*options: str) -> list[str]:
        workloads = json.loads(determined("t", "describe", "1", "--json", *options).out)["workloads"]
        return [kind for workload in workloads for kind, found in workload.items() if found]

    assert of() == ["validation", "checkpoint"]
    assert of("--offset", "1") == ["checkpoint"]
    assert of("--limit", "1") == ["validation"]


def test_sizes_are_spelt_without_spaces() -> None:
    assert [size(number) for number in (0, 1023, 1536, 3 << 20, 5 << 60)] == [
        "0.0B",
        "1023.0B",
        "1.5KB",
        "3.0MB",
        "5120.0PB",
    ]


def test_a_trial_is_named_by_its_task_id(trained: trial_pb2.Trial, determined: CommandLine) -> None:
    task = json.loads(determined("trial", "describe", "1", "--json").out)["trial"]["taskId"]
    assert task.startswith("trial-")
    assert determined("task", "logs", task).out == determined("trial", "logs", "1").out


def test_resolute_prints_its_own(trained: trial_pb2.Trial, resolute: CommandLine) -> None:
    (listed,) = json.loads(resolute("e", "list-trials", "1", "--json").out)
    assert (listed["id"], listed["state"]) == (1, "COMPLETED")
    (checkpoint,) = json.loads(resolute("e", "list-checkpoints", "1", "--json").out)
    assert (checkpoint["trial_id"], checkpoint["steps_completed"]) == (1, 10)
