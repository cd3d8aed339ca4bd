"""``resolute trial describe``."""

from __future__ import annotations

from dataclasses import dataclass

import click

from resolute.cli.display.dropped_records import warn_of_dropped_records
from resolute.cli.display.output import (
    Column,
    Format,
    format_option,
    print_fields,
    print_items,
    print_json,
    print_part,
)
from resolute.cli.display.problems import warn_of_problems
from resolute.cli.display.rendering import rendering
from resolute.cli.display.tables.table_choice import TableChoice
from resolute.cli.display.tracebacks import fold_text
from resolute.cli.display.trial_table import shown_estimate, shown_steps, shown_times
from resolute.cli.experiment.views.describe import METRICS_COLUMNS
from resolute.cli.options.identifiers import TRIALS, keys_argument
from resolute.cli.options.pagination import Page, page_options
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import MetricSummary, RunRecord, TrialMetrics, TrialRecord
from resolute.client.services import Services


@dataclass(frozen=True)
class Description:
    """The properties of one trial that the command shows."""

    trial: TrialRecord
    metrics: list[TrialMetrics]
    metrics_summary: list[MetricSummary]


_TRIAL_COLUMNS: tuple[Column[TrialRecord], ...] = (
    Column("Trial", lambda trial: trial.id, right=True),
    Column("Experiment", lambda trial: trial.experiment_id, right=True),
    Column("State", lambda trial: trial.state),
    Column("Steps", lambda trial: trial.reported_steps, right=True),
    Column("Steps/s", lambda trial: trial.steps_per_second, right=True),
    Column("Done", lambda trial: trial.estimated_end_time),
    Column("Restarts", lambda trial: trial.restarts, right=True),
    Column("Runs", lambda trial: trial.run, right=True),
    Column("Started", lambda trial: trial.runs[0].start_time if trial.runs else None),
    Column("Ended", lambda trial: trial.end_time),
    Column("Hyperparameters", lambda trial: trial.hparams),
)


def lost_steps_text(run: RunRecord) -> str:
    """Says how many steps the next run must repeat; empty where that is not known, or no run follows."""
    if run.lost_steps is None:
        return ""
    return f"{run.lost_steps} step{'' if run.lost_steps == 1 else 's'} lost"


_RUN_COLUMNS: tuple[Column[RunRecord], ...] = (
    Column("Run", lambda run: run.run, right=True),
    Column("Outcome", lambda run: run.outcome.value if run.end_time else "RUNNING"),
    Column("Exit code", lambda run: run.exit_code, right=True),
    Column("Slots", lambda run: run.slot_ids),
    Column("Started", lambda run: run.start_time),
    Column("Ended", lambda run: run.end_time),
    Column("Lost", lost_steps_text, right=True),
    Column("Failure", lambda run: run.failure, note=True),
    Column("Log policies", lambda run: run.log_policies, note=True),
    Column("Stood still", lambda run: run.hang, note=True),
    Column("Guard", lambda run: run.guard, note=True),
    Column("Idle GPUs", lambda run: run.idle, note=True),
    Column("Files held until", lambda run: run.hold_time, note=True),
    Column("Left out of reports", lambda run: run.left_out, note=True),
)
_SUMMARY_COLUMNS: tuple[Column[MetricSummary], ...] = (
    Column("Group", lambda item: item.group),
    Column("Metric", lambda item: item.name),
    Column("Last", lambda item: item.last, right=True),
    Column("At step", lambda item: item.last_steps, right=True),
    Column("Min", lambda item: item.min, right=True),
    Column("Max", lambda item: item.max, right=True),
    Column("Mean", lambda item: item.mean, right=True),
    Column("Reports", lambda item: item.count, right=True),
)


@click.command()
@keys_argument("trial_ids", metavar="ID[,ID...]", type_=TRIALS)
@click.option("--metrics", is_flag=True, help="Also show all metrics that it reported.")
@click.option("--metrics-summary", is_flag=True, help="Also show a summary of each metric.")
@page_options(limit=None)
@format_option
@click.pass_obj
def describe(
    settings: Settings,
    trial_ids: tuple[str, ...],
    metrics: bool,
    metrics_summary: bool,
    page: Page,
    output: Format,
) -> None:
    """Show trials with their runs. --limit, --offset and --pages choose among the reports of --metrics."""
    services = settings.services()
    reports = page if metrics else None
    described = [_describe(services, key, reports=reports, summary=metrics_summary) for key in trial_ids]
    warn_of_problems(services)
    for item in described:
        trial = item.trial
        warn_of_dropped_records(services, trial.experiment_uuid, {trial.uuid: trial.id})
    if output is Format.JSON:
        print_json(described)
    elif output is Format.CSV and rendering() is not None:
        print_items(described, (), output=output)
    elif output is Format.CSV and metrics:
        print_items((report for item in described for report in item.metrics), METRICS_COLUMNS, output=output)
    elif output is Format.CSV and metrics_summary:
        print_items(
            (row for item in described for row in item.metrics_summary), _SUMMARY_COLUMNS, output=output
        )
    elif output is Format.CSV:
        print_items((item.trial for item in described), _TRIAL_COLUMNS, output=output)
    else:
        for item in described:
            _show(item)


def _describe(services: Services, key: str, *, reports: Page | None, summary: bool) -> Description:
    trial = services.trials.get(key)
    return Description(
        trial,
        list(reports.of(services.metrics.reports(trial))) if reports is not None else [],
        services.metrics.summaries([trial.uuid]) if summary else [],
    )


def _show(item: Description) -> None:
    trial = item.trial
    click.secho(f"Trial {trial.id} of experiment {trial.experiment_id}", bold=True)
    print_fields(
        [
            ("State", trial.state),
            (
                "Explanation",
                trial.explanation if TableChoice.current().wide else fold_text(trial.explanation),
            ),
            ("Status", trial.status),
            ("Hyperparameters", trial.hparams),
            ("Seed", trial.seed),
            ("Restarts", trial.restarts),
            ("Excluded nodes", trial.excluded_nodes),
            ("Steps", shown_steps(trial)),
            ("Done", shown_estimate(trial.estimated_end_time)),
            ("Time", shown_times(trial)),
            ("Latest checkpoint", _checkpoint_line(trial)),
            ("Created", trial.create_time),
            ("Ended", trial.end_time),
            ("Processes", trial.pids),
            ("UUID", trial.uuid),
        ]
    )
    print_part(trial.runs, _RUN_COLUMNS)
    print_part(item.metrics_summary, _SUMMARY_COLUMNS)
    print_part(item.metrics, METRICS_COLUMNS)
    click.echo()


def _checkpoint_line(trial: TrialRecord) -> str:
    return f"{trial.latest_checkpoint} at step {trial.steps_completed}" if trial.latest_checkpoint else ""
