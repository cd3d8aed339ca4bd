"""``resolute experiment describe``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from resolute.cli.display.dropped_records import warn_of_dropped_records
from resolute.cli.display.output import (
    Column,
    Format,
    format_option,
    print_fields,
    print_items,
    print_json,
    write_csv,
)
from resolute.cli.display.problems import warn_of_problems
from resolute.cli.display.table_choice import TableChoice
from resolute.cli.display.tracebacks import fold_text
from resolute.cli.display.trial_table import TrialWithBest, best_of, columns, trials_with_best
from resolute.cli.experiment.views import list as listing
from resolute.cli.options.identifiers import EXPERIMENTS
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import ExperimentRecord, TrialMetrics
from resolute.client.services import Services


@dataclass(frozen=True)
class _Description:
    """What is told of one experiment."""

    experiment: ExperimentRecord
    trials: list[TrialWithBest]
    best: TrialWithBest | None
    metrics: list[TrialMetrics]


METRICS_COLUMNS: tuple[Column[TrialMetrics], ...] = (
    Column("Trial", lambda report: report.trial_id, right=True),
    Column("Run", lambda report: report.trial_run_id, right=True),
    Column("Group", lambda report: report.group),
    Column("Steps", lambda report: report.steps_completed, right=True),
    Column("Time", lambda report: report.end_time),
    Column("Metrics", lambda report: report.metrics),
)
"""What lists of reports show."""


@click.command()
@click.argument("experiment_ids", metavar="ID[,ID...]", type=EXPERIMENTS)
@click.option("--metrics", is_flag=True, help="Also show all metrics that its trials reported.")
@click.option(
    "--outdir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write experiments.csv, trials.csv and, with --metrics, metrics.csv into this directory.",
)
@format_option
@click.pass_obj
def describe(
    settings: Settings, experiment_ids: tuple[str, ...], metrics: bool, outdir: Path | None, output: Format
) -> None:
    """Show experiments with their trials."""
    services = settings.services()
    found = [_describe(services, key, metrics=metrics) for key in experiment_ids]
    warn_of_problems(services)
    for item in found:
        trials = {one.trial.uuid: one.trial.id for one in item.trials}
        warn_of_dropped_records(services, item.experiment.uuid, trials)
    if outdir is not None:
        _write(outdir, found, metrics=metrics)
    elif output is Format.JSON:
        print_json(found)
    elif output is Format.CSV and metrics:
        print_items((report for item in found for report in item.metrics), METRICS_COLUMNS, output=output)
    elif output is Format.CSV:
        print_items((item.experiment for item in found), listing.COLUMNS, output=output)
    else:
        for item in found:
            _show(item)


def _describe(services: Services, key: str, *, metrics: bool) -> _Description:
    experiment = services.experiments.get(key)
    trials = trials_with_best(services, experiment)
    reports = (
        [report for item in trials for report in services.metrics.reports(item.trial)] if metrics else []
    )
    best = best_of(trials, smaller_is_better=experiment.smaller_is_better)
    return _Description(experiment, trials, best, reports)


def _write(directory: Path, found: Sequence[_Description], *, metrics: bool) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "experiments.csv").open("w", newline="") as file:
        write_csv(file, [item.experiment for item in found], listing.COLUMNS)
    with (directory / "trials.csv").open("w", newline="") as file:
        # Experiments decide by different metrics, whose names cannot all be the heading.
        write_csv(file, [trial for item in found for trial in item.trials], columns("", ()))
    if metrics:
        with (directory / "metrics.csv").open("w", newline="") as file:
            write_csv(file, [report for item in found for report in item.metrics], METRICS_COLUMNS)
    click.echo(directory)


def _show(item: _Description) -> None:
    experiment = item.experiment
    click.secho(f"Experiment {experiment.id}: {experiment.name}", bold=True)
    order = "smaller" if experiment.smaller_is_better else "larger"
    searcher = f"{experiment.searcher_name} by {experiment.searcher_metric} ({order} is better)"
    print_fields(
        [
            ("State", experiment.shown_state),
            ("Failure", experiment.failure if TableChoice.current().wide else fold_text(experiment.failure)),
            ("Warning", experiment.warning),
            ("Why it waits", experiment.explanation),
            ("Progress", f"{experiment.progress:.0%}"),
            ("Searcher", searcher if experiment.searcher_metric else experiment.searcher_name),
            ("Description", experiment.description),
            ("Labels", experiment.labels),
            ("Owner", experiment.owner),
            ("Workspace", f"{experiment.workspace}/{experiment.project}" if experiment.workspace else ""),
            ("Created", experiment.create_time),
            ("Ended", experiment.end_time),
            ("Archived", experiment.archived or None),
            ("UUID", experiment.uuid),
            ("Best trial", _best_line(item.best)),
        ]
    )
    if item.trials:
        click.echo()
        print_items(item.trials, columns(experiment.searcher_metric, item.trials), output=Format.TABLE)
    if item.metrics:
        click.echo()
        print_items(item.metrics, METRICS_COLUMNS, output=Format.TABLE)
    click.echo()


def _best_line(item: TrialWithBest | None) -> str:
    if item is None or item.best is None:
        return ""
    return f"{item.trial.id}: {item.best.metric} {item.best.value:.6g} at step {item.best.steps}"
