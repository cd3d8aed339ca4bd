"""``resolute experiment compare``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.display.trial_table import best_steps, best_value
from resolute.cli.options.identifiers import EXPERIMENTS, keys_argument
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import MetricSummary, TrialRecord


@dataclass(frozen=True)
class _Row:
    """A trial with its latest reports."""

    trial: TrialRecord
    last: dict[str, Any]
    """By ``group.name``."""


@click.command()
@keys_argument("experiment_ids", metavar="ID[,ID...]", type_=EXPERIMENTS)
@click.option("--metric", "metrics", multiple=True, help="Only metrics of this name. Repeatable.")
@click.option("--group", default="validation", show_default=True, help="Group of the metrics.")
@format_option
@click.pass_obj
def compare(
    settings: Settings, experiment_ids: tuple[str, ...], metrics: tuple[str, ...], group: str, output: Format
) -> None:
    """Compare the trials of experiments: hyperparameters that differ, and metrics."""
    services = settings.services()
    trials = [
        trial for key in experiment_ids for trial in services.trials.list(services.experiments.get(key).uuid)
    ]
    summaries = services.metrics.summaries([trial.uuid for trial in trials], group=group, names=metrics)
    rows = [_Row(trial, _last(summaries, trial.uuid)) for trial in trials]
    print_items(rows, _columns(rows), output=output)


def _last(summaries: list[MetricSummary], trial: str) -> dict[str, Any]:
    return {item.name: item.last for item in summaries if item.trial_uuid == trial}


def _columns(rows: list[_Row]) -> list[Column[_Row]]:
    hparams = sorted({name for row in rows for name in _flat(row.trial.hparams)})
    differing = [
        name for name in hparams if len({repr(_flat(row.trial.hparams).get(name)) for row in rows}) > 1
    ]
    metrics = sorted({name for row in rows for name in row.last})
    return [
        Column("Experiment", lambda row: row.trial.experiment_id, right=True),
        Column("Trial", lambda row: row.trial.id, right=True),
        Column("State", lambda row: row.trial.state),
        *(Column(name, _hparam(name), right=True) for name in differing),
        Column("Best", lambda row: best_value(row.trial), right=True),
        Column("At step", lambda row: best_steps(row.trial), right=True),
        *(Column(f"Last {name}", _metric(name), right=True) for name in metrics),
    ]


def _hparam(name: str) -> Callable[[_Row], Any]:
    return lambda row: _flat(row.trial.hparams).get(name)


def _metric(name: str) -> Callable[[_Row], Any]:
    return lambda row: row.last.get(name)


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
