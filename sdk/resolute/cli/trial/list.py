"""``resolute trial list``."""

from __future__ import annotations

import click

from resolute.cli.display.output import Format, format_option, print_items
from resolute.cli.display.trial_table import columns
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.pagination import Page, page_options
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import ExperimentRecord
from resolute.client.services import Services
from resolute.errors import NotFoundError


@click.command(name="list")
@click.argument("experiment_id", type=EXPERIMENT, required=False)
@page_options(limit=None)
@format_option
@click.pass_obj
def list_(settings: Settings, experiment_id: str | None, page: Page, output: Format) -> None:
    """List the trials of an experiment, by default the newest, with their best validations, newest first."""
    services = settings.services()
    experiment = services.experiments.get(experiment_id) if experiment_id else _newest(services)
    trials = list(page.of(services.trials.list(experiment.uuid, order_by="number desc", limit=page.end)))
    print_items(trials, columns(experiment.searcher_metric, trials), output=output)


def _newest(services: Services) -> ExperimentRecord:
    experiment = next(iter(services.experiments.list(limit=1)), None)
    if experiment is None:
        raise NotFoundError("there is no experiment yet; `resolute experiment create` submits one")
    click.echo(f"no EXPERIMENT_ID is given: trials of experiment {experiment.id}, the newest", err=True)
    return experiment
