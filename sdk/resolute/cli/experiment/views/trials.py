"""``resolute experiment list-trials``."""

from __future__ import annotations

import itertools

import click

from resolute.cli.display.output import Format, format_option, print_items
from resolute.cli.display.trial_table import columns, with_best
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.settings import Settings


@click.command(name="list-trials")
@click.argument("experiment_id", type=EXPERIMENT)
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of rows.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Skip this many rows.")
@format_option
@click.pass_obj
def list_trials(
    settings: Settings, experiment_id: str, limit: int | None, offset: int, output: Format
) -> None:
    """List the trials of an experiment with their best validations."""
    services = settings.services()
    experiment = services.experiments.get(experiment_id)
    end = None if limit is None else offset + limit
    trials = itertools.islice(services.trials.list(experiment.uuid, limit=end), offset, None)
    rows = [with_best(experiment, trial) for trial in trials]
    print_items(rows, columns(experiment.searcher_metric), output=output)
