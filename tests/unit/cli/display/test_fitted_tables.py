"""Tables on terminals of 80 and 120 columns: no row wraps, and nothing that matters is lost."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import click
import pytest

from resolute.api.experiments.v1 import experiment_pb2, trial_pb2
from resolute.cli.accounts import projects, tokens, users, workspaces
from resolute.cli.cluster import jobs, machines, templates
from resolute.cli.display.checkpoint_table import print_checkpoints
from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.display.tables.fitted_table import relative_time
from resolute.cli.display.trial_table import columns
from resolute.cli.experiment.views import list as experiments
from resolute.cli.model import models
from resolute.client.objects.checkpoint_ranking import ValidatedCheckpoint
from resolute.client.schema import convert
from resolute.client.schema.accounts import (
    ProjectRecord,
    QuotaRecord,
    TokenRecord,
    UserRecord,
    UserRole,
    WorkspaceRecord,
)
from resolute.client.schema.records import (
    CheckpointRecord,
    JobRecord,
    ModelRecord,
    SlotRecord,
    TemplateRecord,
    ValidationRecord,
)
from resolute.client.schema.states import CheckpointState, ExperimentState, TrialState

UUID = "00000000-0000-0000-0000-0123456789ab"
NOW = datetime(2030, 1, 31, 12, tzinfo=timezone.utc)
NAME = "resnet50 on the whole of imagenet with a cosine schedule and label smoothing"
REASON = "its trial 3 failed 5 times: ValueError: operands could not be broadcast together, see the log"
EXPERIMENT = replace(
    convert.experiment(experiment_pb2.Experiment(number=1234, searcher_name="adaptive_asha")),
    name=NAME,
    state=ExperimentState.COMPLETED,
    owner="somebody@example.org",
    trial_count=1000,
    create_time=NOW,
    end_time=NOW,
    warning=REASON,
)
TRIAL = replace(
    convert.trial(trial_pb2.Trial(number=98765)),
    state=TrialState.ERROR,
    hparams={f"layer_{number}_width": 2.0**-number for number in range(20)},
    create_time=NOW,
    end_time=NOW,
    explanation=REASON,
)
BEST = replace(TRIAL, best_validation=ValidationRecord(0.987654, 1000))
CHECKPOINT = CheckpointRecord(
    uuid=UUID,
    state=CheckpointState.COMPLETED,
    trial_uuid="t",
    experiment_uuid="e",
    run=1,
    steps_completed=1_000_000,
    files=(),
    metadata={},
    create_time=NOW,
    commit_time=NOW,
    total_size=123_456_789,
    storage=None,
)
JOB = JobRecord(
    experiment_id=1234,
    name=NAME,
    owner="somebody@example.org",
    state=ExperimentState.ACTIVE,
    priority=42,
    weight=1.0,
    max_slots=64,
    slots_per_trial=8,
    held_slots=32,
    queued_trials=100,
    allocated_trials=4,
    explanation=REASON,
)
MODEL = ModelRecord(
    uuid=UUID,
    id=7,
    name=NAME,
    description="",
    notes="",
    labels=("vision", "production", "reviewed"),
    metadata={},
    workspace="research",
    owner="ada",
    archived=False,
    version_count=3,
    create_time=NOW,
    update_time=NOW,
)
PROJECT = ProjectRecord(
    id=3,
    name=NAME,
    workspace="research",
    description=REASON,
    notes="",
    owner="ada",
    archived=False,
    experiment_count=12,
    create_time=NOW,
)
WORKSPACE = WorkspaceRecord(
    id=2,
    name=NAME,
    owner="ada",
    archived=False,
    quota=QuotaRecord(live_experiments=10, slots=64),
    used=QuotaRecord(live_experiments=3, slots=17),
    project_count=4,
    experiment_count=99,
    create_time=NOW,
)
TOKEN = TokenRecord(
    id=UUID, username="ada", description=REASON, create_time=NOW, expire_time=NOW, revoked=True
)
USER = UserRecord(
    id=1, name="ada@" + NAME, role=UserRole.ADMIN, active=True, has_password=True, create_time=NOW
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(printing: Callable[[], None]) -> list[str]:
    file = Terminal()
    with contextlib.redirect_stdout(file):
        printing()
    return [click.unstyle(line) for line in file.getvalue().splitlines()]


def table(rows: Sequence[Any], of: Sequence[Column[Any]]) -> Callable[[], None]:
    return lambda: print_items(rows, of, output=Format.TABLE)


TABLES: dict[str, tuple[Callable[[], None], tuple[str, ...]]] = {
    "experiment list": (table([EXPERIMENT], experiments.COLUMNS), ("1234", "COMPLETED", "1000")),
    "experiment list-trials": (
        table([BEST], columns("accuracy", [BEST])),
        ("98765", "ERROR", "0.987654"),
    ),
    "experiment list-checkpoints": (
        lambda: print_checkpoints(
            [ValidatedCheckpoint(CHECKPOINT, TRIAL, {"accuracy": 0.5})],
            metric="accuracy",
            output=Format.TABLE,
        ),
        (UUID, "COMPLETED", "0.5"),
    ),
    "job list": (table([JOB], jobs._COLUMNS), ("1234", "ACTIVE", "42")),
    "model list": (table([MODEL], models._COLUMNS), ("7", "research")),
    "project list": (table([PROJECT], projects.COLUMNS), ("3", "12")),
    "workspace list": (table([WORKSPACE], workspaces._COLUMNS), ("3 of 10", "17 of 64")),
    "token list": (table([TOKEN], tokens._COLUMNS), (UUID, "yes")),
    "user list": (table([USER], users._COLUMNS), ("admin", "yes")),
    "template list": (
        table([TemplateRecord(NAME, dict.fromkeys(NAME.split(), 1))], templates._COLUMNS),
        ("resnet50",),
    ),
    "slot list": (table([SlotRecord(0, "gpu", "a", 98765, 0)], machines.SLOT_COLUMNS), ("gpu", "98765")),
}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", TABLES)
def test_no_row_wraps_and_what_matters_is_there(
    monkeypatch: pytest.MonkeyPatch, name: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    printing, essential = TABLES[name]
    heading, row, *below = shown(printing)
    assert len(heading) <= width
    assert len(row) <= width
    assert all(text in row for text in essential), row
    assert all(line.startswith(("(left out", "ID 1234", "Trial 98765", "Experiment 1234")) for line in below)


def test_sentences_stand_below_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert f"ID 1234: warning: {REASON}" in shown(TABLES["experiment list"][0])
    assert f"Trial 98765: explanation: {REASON}" in shown(TABLES["experiment list-trials"][0])


def test_columns_without_a_value_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    heading, *_ = shown(table([replace(EXPERIMENT, end_time=None)], experiments.COLUMNS))
    assert "Created" in heading
    assert "Ended" not in heading
    assert "Archived" not in heading


@pytest.mark.parametrize(
    ("ago", "text"),
    [
        (timedelta(seconds=0.2), "now"),
        (timedelta(seconds=59), "59 s ago"),
        (timedelta(minutes=61), "1 h ago"),
        (timedelta(days=400), "400 d ago"),
        (timedelta(minutes=-5), "in 5 min"),
    ],
)
def test_times_are_relative(ago: timedelta, text: str) -> None:
    assert relative_time(NOW - ago, NOW) == text


@click.command()
@format_option
def things(output: Format) -> None:
    """Prints three things."""
    of = (Column[Any]("Name", lambda thing: thing[0]), Column[Any]("Best loss", lambda thing: thing[1]))
    print_items([("b", 2.0), ("a", None), ("c", 1.0)], of, output=output)


def run(*arguments: str) -> list[str]:
    return shown(lambda: things.main(list(arguments), standalone_mode=False))


def test_columns_and_order_can_be_chosen() -> None:
    assert run("--columns", "name", "--sort-by", "best_loss") == ["Name", "c", "b", "a"]
    assert run("--columns", "best_loss,name", "--sort-by", "name:desc", "--csv") == [
        "best_loss,name",
        "1.0,c",
        "2.0,b",
        ",a",
    ]
    with pytest.raises(click.UsageError, match="the columns are name, best_loss"):
        run("--columns", "loss")


def test_wide_tables_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")

    @click.command()
    @format_option
    def wide(output: Format) -> None:
        print_items([NAME], (Column[str]("Name", lambda name: name),), output=output)

    assert shown(lambda: wide.main(["--wide"], standalone_mode=False))[1].rstrip() == NAME


def test_hyperparameters_that_differ_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    same = {"batch_size": 64, "hidden": 32}
    trials = [replace(TRIAL, hparams={**same, "lr": lr}) for lr in (0.1, 0.01)]
    lines = shown(table(trials, columns("accuracy", trials)))
    assert "lr=0.1, batch_size=64" in lines[1]
    assert "lr=0.01, batch_size=64" in lines[2]
