"""``resolute trial export``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from resolute.cli.display.output import to_plain
from resolute.cli.display.tables.csv_rows import write_rows
from resolute.cli.display.terminal import for_programs
from resolute.cli.options.identifiers import TRIALS, keys_argument
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import TrialMetrics
from resolute.contracts.distribution import install_command

_FIXED = ("trial_id", "run", "group", "steps_completed", "time")
_PREFIX = "metrics."
"""Begins the names of metrics' columns, so that a metric called ``time`` keeps its own."""


@click.command()
@keys_argument("trial_ids", metavar="ID[,ID...]", type_=TRIALS)
@click.option("--group", default="", help="Only this group [all groups].")
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write, .csv or .parquet [CSV to standard output].",
)
@click.pass_obj
def export(settings: Settings, trial_ids: tuple[str, ...], group: str, target: Path | None) -> None:
    """Export the metrics of trials as a table: one row per report, one column per metric.

    Parquet needs pyarrow, the extra `export`. There, a metric with non-numeric values
    becomes a column of JSON texts.
    """
    if target is not None and target.suffix not in {".csv", ".parquet"}:
        raise click.UsageError(f"{target.name} must end with .csv or .parquet.")
    services = settings.services()
    trials = [services.trials.get(key) for key in trial_ids]
    summaries = services.metrics.summaries([trial.uuid for trial in trials], group=group)
    names = sorted({item.name for item in summaries})
    reports = (report for trial in trials for report in services.metrics.reports(trial, group=group))
    rows = (_row(report, names) for report in reports)
    header = [*_FIXED, *(_PREFIX + name for name in names)]
    if target is None:
        _write_csv(for_programs(), header, rows)
    elif target.suffix == ".csv":
        with target.open("w", newline="", encoding="utf-8") as file:
            _write_csv(file, header, rows)
    else:
        _write_parquet(target, header, rows)


def _row(report: TrialMetrics, names: Sequence[str]) -> list[Any]:
    fixed = [report.trial_id, report.trial_run_id, report.group, report.steps_completed, report.end_time]
    return [*fixed, *(report.metrics.get(name) for name in names)]


def _write_csv(file: TextIO, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    plain = (
        [_json(value) if isinstance(value, (dict, list)) else to_plain(value) for value in row]
        for row in rows
    )
    write_rows(file, header, plain)


def _write_parquet(target: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise click.ClickException(
            f"Parquet needs pyarrow: {install_command('export')}, or write .csv"
        ) from error
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    arrays = [pa.array(column) for column in columns[: len(_FIXED)]]
    for column in columns[len(_FIXED) :]:
        if all(value is None or type(value) in {int, float} for value in column):
            numbers = [None if value is None else float(value) for value in column]
            arrays.append(pa.array(numbers, pa.float64()))
        else:
            texts = [None if value is None else _json(value) for value in column]
            arrays.append(pa.array(texts, pa.string()))
    parquet.write_table(pa.table(arrays, names=list(header)), target)


def _json(value: Any) -> str:
    return json.dumps(to_plain(value), ensure_ascii=False)
