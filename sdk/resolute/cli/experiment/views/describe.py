"""``resolute experiment describe``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from resolute.cli.display.checkpoint_table import shown_reasons
from resolute.cli.display.dropped_records import warn_of_dropped_records
from resolute.cli.display.output import (
    Column,
    Format,
    format_option,
    print_fields,
    print_items,
    print_json,
    print_part,
    write_csv,
)
from resolute.cli.display.problems import warn_of_problems
from resolute.cli.display.rendering import rendering
from resolute.cli.display.tables.csv_rows import write_rows
from resolute.cli.display.tables.ruled_table import cells_of
from resolute.cli.display.tables.table_choice import TableChoice
from resolute.cli.display.tracebacks import fold_text
from resolute.cli.display.trial_table import best_of, best_steps, best_value, columns, shown_estimate
from resolute.cli.experiment.views import list as listing
from resolute.cli.options.identifiers import EXPERIMENTS, keys_argument
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import ExperimentRecord, TrialMetrics, TrialRecord
from resolute.client.services import Services


@dataclass(frozen=True)
class KeptCheckpoint:
    """A checkpoint that the policy of its experiment keeps."""

    trial_id: int | None
    steps_completed: int
    keep_reasons: tuple[str, ...]
    uuid: str


@dataclass(frozen=True)
class Description:
    """The properties of one experiment that the command shows."""

    experiment: ExperimentRecord
    trials: list[TrialRecord]
    best: TrialRecord | None
    metrics: list[TrialMetrics]
    kept: list[KeptCheckpoint]


METRICS_COLUMNS: tuple[Column[TrialMetrics], ...] = (
    Column("Trial", lambda report: report.trial_id, right=True),
    Column("Run", lambda report: report.trial_run_id, right=True),
    Column("Group", lambda report: report.group),
    Column("Steps", lambda report: report.steps_completed, right=True),
    Column("Time", lambda report: report.end_time),
    Column("Metrics", lambda report: report.metrics),
)
"""What lists of reports show."""
_KEPT_COLUMNS: tuple[Column[KeptCheckpoint], ...] = (
    Column("Trial", lambda kept: kept.trial_id, right=True),
    Column("Steps", lambda kept: kept.steps_completed, right=True),
    Column("Kept as", lambda kept: shown_reasons(kept.keep_reasons)),
    Column("Checkpoint", lambda kept: kept.uuid, kept=True),
)


@click.command()
@keys_argument("experiment_ids", metavar="ID[,ID...]", type_=EXPERIMENTS)
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
    described = [_describe(services, key, metrics=metrics) for key in experiment_ids]
    warn_of_problems(services)
    for item in described:
        trials = {trial.uuid: trial.id for trial in item.trials}
        warn_of_dropped_records(services, item.experiment.uuid, trials)
    if outdir is not None:
        _write(outdir, described, metrics=metrics)
    elif output is Format.JSON:
        print_json(described)
    elif output is Format.CSV and rendering() is not None:
        print_items(described, (), output=output)
    elif output is Format.CSV and metrics:
        print_items((report for item in described for report in item.metrics), METRICS_COLUMNS, output=output)
    elif output is Format.CSV:
        print_items((item.experiment for item in described), listing.COLUMNS, output=output)
    else:
        for item in described:
            _show(item)


def _describe(services: Services, key: str, *, metrics: bool) -> Description:
    experiment = services.experiments.get(key)
    trials = list(services.trials.list(experiment.uuid))
    reports = [report for trial in trials for report in services.metrics.reports(trial)] if metrics else []
    best = best_of(trials, smaller_is_better=experiment.smaller_is_better)
    return Description(experiment, trials, best, reports, list(_kept(services, experiment, trials)))


def _kept(
    services: Services, experiment: ExperimentRecord, trials: Sequence[TrialRecord]
) -> Iterator[KeptCheckpoint]:
    ids = {trial.uuid: trial.id for trial in trials}
    for checkpoint in services.checkpoints.of_experiment(experiment.uuid):
        if checkpoint.keep_reasons:
            yield KeptCheckpoint(
                ids.get(checkpoint.trial_uuid),
                checkpoint.steps_completed,
                checkpoint.keep_reasons,
                checkpoint.uuid,
            )


def _write(directory: Path, described: Sequence[Description], *, metrics: bool) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    rendered = rendering()
    if rendered is not None:
        for name, table in zip(("experiments", "trials", "workloads"), rendered.tables, strict=True):
            with (directory / f"{name}.csv").open("w", newline="") as file:
                write_rows(file, *cells_of(table, described))
        click.echo(directory)
        return
    with (directory / "experiments.csv").open("w", newline="") as file:
        write_csv(file, [item.experiment for item in described], listing.COLUMNS)
    with (directory / "trials.csv").open("w", newline="") as file:
        # Experiments decide by different metrics, whose names cannot all be the heading.
        write_csv(file, [trial for item in described for trial in item.trials], columns("", ()))
    if metrics:
        with (directory / "metrics.csv").open("w", newline="") as file:
            write_csv(file, [report for item in described for report in item.metrics], METRICS_COLUMNS)
    click.echo(directory)


def _show(item: Description) -> None:
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
            ("Progress", experiment.shown_progress),
            ("Done", shown_estimate(experiment.estimated_end_time)),
            ("Searcher", searcher if experiment.searcher_metric else experiment.searcher_name),
            ("Description", experiment.description),
            ("Labels", experiment.labels),
            ("Owner", experiment.owner),
            ("Workspace", f"{experiment.workspace}/{experiment.project}" if experiment.workspace else ""),
            ("Created", experiment.create_time),
            ("Started", experiment.start_time),
            ("Ended", experiment.end_time),
            ("Archived", experiment.archived or None),
            ("UUID", experiment.uuid),
            ("Best trial", _best_line(item)),
        ]
    )
    print_part(item.trials, columns(experiment.searcher_metric, item.trials))
    print_part(item.kept, _KEPT_COLUMNS)
    print_part(item.metrics, METRICS_COLUMNS)
    click.echo()


def _best_line(item: Description) -> str:
    if item.best is None:
        return ""
    metric = item.experiment.searcher_metric
    return f"{item.best.id}: {metric} {best_value(item.best):.6g} at step {best_steps(item.best)}"
