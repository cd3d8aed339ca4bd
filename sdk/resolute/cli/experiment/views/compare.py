"""``resolute experiment compare``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.display.trial_table import TrialWithBest, trials_with_best
from resolute.cli.options.identifiers import EXPERIMENTS
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import MetricSummary


@dataclass(frozen=True)
class _Row:
    """A trial with what it reported last."""

    ranked: TrialWithBest
    last: dict[str, Any]
    """By ``group.name``."""


@click.command()
@click.argument("experiment_ids", metavar="ID[,ID...]", type=EXPERIMENTS)
@click.option("--metric", "metrics", multiple=True, help="Only metrics of this name. Repeatable.")
@click.option("--group", default="validation", show_default=True, help="Group of the metrics.")
@format_option
@click.pass_obj
def compare(
    settings: Settings, experiment_ids: tuple[str, ...], metrics: tuple[str, ...], group: str, output: Format
) -> None:
    """Compare the trials of experiments: hyperparameters that differ, and metrics."""
    services = settings.services()
    found = [
        item for key in experiment_ids for item in trials_with_best(services, services.experiments.get(key))
    ]
    summaries = services.metrics.summaries([item.trial.uuid for item in found], group=group, names=metrics)
    rows = [_Row(item, _last(summaries, item.trial.uuid)) for item in found]
    print_items(rows, _columns(rows), output=output)


def _last(summaries: list[MetricSummary], trial: str) -> dict[str, Any]:
    return {item.name: item.last for item in summaries if item.trial_uuid == trial}


def _columns(rows: list[_Row]) -> list[Column[_Row]]:
    hparams = sorted({name for row in rows for name in _flat(row.ranked.trial.hparams)})
    differing = [
        name for name in hparams if len({repr(_flat(row.ranked.trial.hparams).get(name)) for row in rows}) > 1
    ]
    metrics = sorted({name for row in rows for name in row.last})
    return [
        Column("Experiment", lambda row: row.ranked.trial.experiment_id, right=True),
        Column("Trial", lambda row: row.ranked.trial.id, right=True),
        Column("State", lambda row: row.ranked.trial.state),
        *(Column(name, _hparam(name), right=True) for name in differing),
        Column("Best", lambda row: row.ranked.best.value if row.ranked.best else None, right=True),
        Column("At step", lambda row: row.ranked.best.steps if row.ranked.best else None, right=True),
        *(Column(f"Last {name}", _metric(name), right=True) for name in metrics),
    ]


def _hparam(name: str) -> Callable[[_Row], Any]:
    return lambda row: _flat(row.ranked.trial.hparams).get(name)


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
