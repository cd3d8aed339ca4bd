"""``resolute search importance``."""

from __future__ import annotations

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.settings import Settings
from resolute.client.remote.searches import Importance

_COLUMNS: tuple[Column[Importance], ...] = (
    Column("Hyperparameter", lambda row: row.name),
    Column("Share", lambda row: round(row.share, 3), right=True),
    Column("Error", lambda row: round(row.error, 3), right=True),
)


@click.command(name="importance")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@format_option
@click.pass_context
def importance(ctx: click.Context, experiment_id: str, output: Format) -> None:
    """Show how much each hyperparameter of experiment ID matters for its metric.

    A share is what a hyperparameter explains alone of the metric's variance, by fANOVA, with its
    standard error.
    """
    settings: Settings = ctx.obj
    services = settings.services()
    experiment = services.experiments.get(experiment_id)
    shares = services.searches.importances(experiment.uuid)
    print_items(shares.found, _COLUMNS, output=output)
    notes = [f"From the results of {shares.trials} of {shares.trials_with_result} trials that have one."]
    if not shares.found:
        notes.append("At least 3 results that differ are needed, and a hyperparameter with several values.")
    if shares.omitted:
        notes.append(f"{shares.omitted} more hyperparameters were left out.")
    click.echo(" ".join(notes), err=True)
