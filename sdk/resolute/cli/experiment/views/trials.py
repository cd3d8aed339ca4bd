"""``resolute experiment list-trials``."""

from __future__ import annotations

import click

from resolute.cli.display.output import Format, format_option, print_items
from resolute.cli.display.trial_table import columns
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.pagination import Page, page_options
from resolute.cli.options.settings import Settings


@click.command(name="list-trials")
@click.argument("experiment_id", type=EXPERIMENT)
@page_options(limit=None)
@format_option
@click.pass_obj
def list_trials(settings: Settings, experiment_id: str, page: Page, output: Format) -> None:
    """List the trials of an experiment with their best validations."""
    services = settings.services()
    experiment = services.experiments.get(experiment_id)
    trials = list(page.of(services.trials.list(experiment.uuid, limit=page.end)))
    print_items(trials, columns(experiment.searcher_metric, trials), output=output)
