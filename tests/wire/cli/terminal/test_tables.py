"""What lists and descriptions print, for people and for programs."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster

from resolute.api.experiments.v1 import experiment_pb2, run_pb2, trial_pb2
from resolute.api.metrics.v1 import summary_pb2, validation_pb2


def search(cluster: ScriptedCluster) -> list[trial_pb2.Trial]:
    """An experiment with four trials, the third the best."""
    state = cluster.state
    experiment = state.add_experiment(searcher_name="random", progress=0.5, labels=["mnist"])
    trials = [state.add_trial(experiment, hparams={"lr": 10.0**-n, "net": {"width": n}}) for n in range(4)]
    for trial, value in zip(trials, (0.5, 0.7, 0.9), strict=False):
        state.bests.append(
            validation_pb2.BestValidation(trial_id=trial.trial_id, metric="accuracy", value=value, steps=10)
        )
    return trials


def rows(text: str) -> list[dict[str, Any]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_experiments_are_listed_newest_first_over_all_pages(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    for number in range(8):
        cluster.state.add_experiment(name=f"try {number}", archived=number == 0)
    listed = json.loads(resolute("e", "ls", "--json").out)
    assert [item["id"] for item in listed] == [8, 7, 6, 5, 4, 3, 2]
    assert listed[0]["state"] == "ACTIVE"
    assert listed[0]["create_time"].startswith("2023-11-14T")
    everything = rows(resolute("experiment", "list", "-a", "--csv").out)
    assert [row["id"] for row in everything] == [str(number) for number in range(8, 0, -1)]
    assert everything[-1]["archived"] == "True"
    limited = rows(resolute("e", "list", "--limit", "4", "--offset", "2", "--csv").out)
    assert [row["id"] for row in limited] == ["6", "5", "4", "3"]
    assert [row["id"] for row in rows(resolute("e", "list", "--name", "try 3", "--csv").out)] == ["4"]


def test_a_table_shows_what_an_active_experiment_does(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    cluster.state.add_experiment(
        name="a name [bold]with brackets", activity=experiment_pb2.EXPERIMENT_ACTIVITY_RUNNING, progress=0.25
    )
    cluster.state.add_experiment(state=experiment_pb2.EXPERIMENT_STATE_PAUSED)
    table = resolute("e", "list").out
    assert "a name [bold]with brackets" in table
    assert "RUNNING" in table
    assert "25%" in table
    running = rows(resolute("e", "list", "--state", "running", "--csv").out)
    assert [row["id"] for row in running] == ["1"]
    assert [row["id"] for row in rows(resolute("e", "list", "--state", "PAUSED", "--csv").out)] == ["2"]


def test_json_and_csv_exclude_each_other(resolute: CommandLine) -> None:
    outcome = resolute("e", "list", "--json", "--csv")
    assert outcome.code == 2
    assert "--json and --csv exclude each other." in outcome.err


def test_trials_are_listed_with_their_best_validations(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    search(cluster)
    listed = rows(resolute("e", "lt", "1", "--csv").out)
    assert [row["best_accuracy"] for row in listed] == ["0.5", "0.7", "0.9", ""]
    assert json.loads(listed[2]["hyperparameters"]) == {"lr": 0.01, "net": {"width": 2}}
    assert [
        row["trial"] for row in rows(resolute("e", "lt", "1", "--limit", "2", "--offset", "1", "--csv").out)
    ] == [
        "2",
        "3",
    ]
    as_json = json.loads(resolute("e", "list-trials", "1", "--json").out)
    assert as_json[2]["best_validation"] == {"value": 0.9, "steps": 10}
    assert as_json[3]["best_validation"] is None
    assert "net={width=2}" in resolute("e", "lt", "1").out


def test_an_experiment_is_described_with_its_best_trial(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    search(cluster)
    text = resolute("e", "describe", "1").out
    assert "Experiment 1: digits" in text
    assert "3: accuracy 0.9 at step 10" in text
    assert "random by accuracy (larger is better)" in text
    described = json.loads(resolute("e", "describe", "1", "--json").out)
    assert described[0]["best"]["id"] == 3
    assert described[0]["experiment"]["config"] == {"name": "digits", "searcher": {"name": "single"}}
    assert rows(resolute("e", "describe", "1", "--csv").out)[0]["searcher"] == "random"


def test_reports_come_with_metrics(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    (trial, *_) = search(cluster)
    cluster.state.add_report(trial, steps=1, loss=math.nan, note="bad")
    cluster.state.add_report(trial, steps=2, loss=0.5)
    described = json.loads(resolute("e", "describe", "1", "--metrics", "--json").out)
    assert described[0]["metrics"][0]["metrics"] == {"loss": "NaN", "note": "bad"}
    reports = rows(resolute("t", "describe", "1", "--metrics", "--csv").out)
    assert [row["steps"] for row in reports] == ["1", "2"]


def test_a_trial_is_described_with_its_runs(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    experiment = cluster.state.add_experiment()
    run = run_pb2.Run(run=1, outcome=run_pb2.RUN_OUTCOME_FAILED, exit_code=3, failure="no such file")
    run.end_time.FromSeconds(1_700_000_000)
    trial = cluster.state.add_trial(experiment, explanation="waits for slots", runs=[run])
    cluster.state.summaries.append(
        summary_pb2.Summary(
            trial_id=trial.trial_id,
            group="validation",
            name="loss",
            count=4,
            sum=2.0,
            min=0.25,
            max=1.0,
            last_number=0.25,
        )
    )
    text = resolute("trial", "describe", "1", "--metrics-summary").out
    for expected in (
        "Trial 1 of experiment 1",
        "waits for slots",
        "FAILED",
        "no such file",
        "lr=0.1",
        "0.25",
    ):
        assert expected in text
    described = json.loads(resolute("t", "desc", "1", "--metrics-summary", "--json").out)
    assert described[0]["trial"]["runs"][0]["exit_code"] == 3
    assert described[0]["metrics_summary"][0]["mean"] == 0.5


def test_a_trial_is_killed(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    cluster.state.add_trial(cluster.state.add_experiment())
    outcome = resolute("t", "kill", "1,2")
    assert outcome.out == "trial 1 is being killed\n"
    assert outcome.err == "error: there is no trial 2\n"
    assert outcome.code == 1


def test_templates_are_kept_and_shown(cluster: ScriptedCluster, resolute: CommandLine, tmp_path: Any) -> None:
    (tmp_path / "gpu.yaml").write_text("resources: {slots_per_trial: 2}\n")
    assert resolute("template", "set", "gpu", "gpu.yaml").out == "template gpu is set\n"
    assert "gpu" in resolute("template", "list").out
    assert resolute("tpl", "describe", "gpu").out == "resources:\n  slots_per_trial: 2\n"
    assert resolute("template", "rm", "gpu").out == "template gpu is removed\n"
    assert resolute("template", "describe", "gpu").err == "error: there is no template 'gpu'\n"


def test_a_search_is_previewed(cluster: ScriptedCluster, resolute: CommandLine, code: Any) -> None:
    shown = resolute("preview-search", str(code / "const.yaml"))
    text = shown.out
    assert shown.err == "warning: a value is doubtful\n"
    assert "Search: random" in text
    assert "3 trials, 12 epochs in total if all go as planned" in text
    plan = json.loads(resolute("preview", str(code / "const.yaml"), "--json").out)
    assert plan["brackets"] == [
        {"trials": 3, "concurrent_trials": 0, "endings": [{"length": 4, "trials": 3}]}
    ]
