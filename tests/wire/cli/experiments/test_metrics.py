"""Metrics as pictures, tables and files."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path

from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster

from resolute.api.experiments.v1 import experiment_pb2, trial_pb2
from resolute.api.metrics.v1 import summary_pb2
from resolute.errors import UnavailableError


def reporting(cluster: ScriptedCluster, *, lr: float = 0.1) -> trial_pb2.Trial:
    """A trial with ten reports of a loss, and one of a text."""
    state = cluster.state
    trial = state.add_trial(state.add_experiment(), hparams={"lr": lr, "same": 1})
    for steps in range(1, 11):
        state.add_report(trial, steps=steps, group="training", loss=1 / steps)
    state.add_report(trial, steps=10, note="good", loss=0.25)
    for group, name, last in (("training", "loss", 0.1), ("validation", "accuracy", lr * 5)):
        state.summaries.append(
            summary_pb2.Summary(
                trial_id=trial.trial_id,
                group=group,
                name=name,
                count=1,
                sum=last,
                last_number=last,
                last_steps=10,
            )
        )
    return trial


def test_a_metric_is_drawn_with_its_range(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    reporting(cluster)
    drawn = resolute("trial", "plot", "1", "loss").out
    assert "training.loss of trial 1" in drawn
    lines = drawn.splitlines()
    assert lines[1].split()[0] == "1"
    assert lines[-3].split()[0] == "0.1"
    assert lines[-1].split() == ["1", "10"]
    points = json.loads(resolute("trial", "plot", "1", "loss", "--json").out)
    assert [point["steps"] for point in points] == list(range(1, 11))


def test_a_metric_is_followed_until_the_trial_ends_across_a_failure_of_the_service(
    cluster: ScriptedCluster, resolute: CommandLine, later: Callable[[Callable[[], object]], None]
) -> None:
    trial = reporting(cluster)
    cluster.state.faults["WatchSeries midway"] = [None, UnavailableError("the service restarts")]

    def go_on() -> None:
        cluster.change(lambda state: state.add_report(trial, steps=500, group="training", loss=7.5))
        cluster.change(
            lambda state: state.end(state.experiments[0], experiment_pb2.EXPERIMENT_STATE_COMPLETED)
        )

    later(go_on)
    drawn = resolute("trial", "plot", "1", "loss", "--group", "training", "--follow").out
    lines = drawn.splitlines()
    assert lines[0] == "training.loss of trial 1"
    assert lines[1].split()[0] == "7.5"
    assert lines[-1].split() == ["1", "500"]


def test_what_is_followed_is_drawn(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    reporting(cluster)
    result = resolute("trial", "plot", "1", "loss", "--follow", "--json")
    assert (result.code, "cannot be combined" in result.err) == (2, True)


def test_a_metric_that_was_never_reported_is_an_error_that_lists_those_that_were(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    reporting(cluster)
    result = resolute("trial", "plot", "1", "los")
    assert result.code == 2
    assert "its metrics are: accuracy, loss" in result.err


def test_a_metric_without_finite_values_cannot_be_drawn(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    trial = reporting(cluster)
    cluster.state.add_report(trial, steps=1, group="mine", bad=math.nan)
    result = resolute("trial", "plot", "1", "bad", "--group", "mine")
    assert (result.code, "no finite value of mine.bad" in result.err) == (1, True)


def test_reports_are_written_as_csv(cluster: ScriptedCluster, resolute: CommandLine, tmp_path: Path) -> None:
    reporting(cluster)
    printed = list(csv.DictReader(io.StringIO(resolute("trial", "export", "1").out)))
    assert len(printed) == 11
    assert (printed[1]["steps_completed"], printed[1]["metrics.loss"]) == ("2", "0.5")
    resolute("trial", "export", "1", "--group", "training", "-o", str(tmp_path / "out.csv"))
    assert len(list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))) == 10


def test_reports_are_written_as_parquet(
    cluster: ScriptedCluster, resolute: CommandLine, tmp_path: Path
) -> None:
    from pyarrow import parquet

    reporting(cluster)
    resolute("trial", "export", "1", "-o", str(tmp_path / "out.parquet"))
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.num_rows == 11
    assert table["metrics.loss"].to_pylist()[:2] == [1.0, 0.5]
    assert str(table.schema.field("metrics.loss").type) == "double"


def test_a_file_of_an_unknown_kind_is_refused(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    reporting(cluster)
    result = resolute("trial", "export", "1", "-o", "x.xls")
    assert (result.code, "must end with .csv or .parquet" in result.err) == (2, True)


def test_trials_stand_side_by_side_with_what_differs(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    reporting(cluster, lr=0.1)
    reporting(cluster, lr=0.2)
    rows = list(csv.DictReader(io.StringIO(resolute("experiment", "compare", "1,2", "--csv").out)))
    assert [(row["trial"], row["lr"], row["last_accuracy"]) for row in rows] == [
        ("1", "0.1", "0.5"),
        ("2", "0.2", "1.0"),
    ]
    assert "same" not in rows[0]
    other = resolute("experiment", "compare", "1,2", "--group", "training", "--metric", "loss", "--csv").out
    assert "last_loss" in other


def test_an_experiment_is_no_task(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    reporting(cluster)
    result = resolute("tensorboard", "open", "1")
    assert result.code == 2
    assert "1 is no TensorBoard but an experiment" in result.err
