"""``resolute experiment list-checkpoints``."""

from __future__ import annotations

import click

from resolute.cli.display.checkpoint_table import print_checkpoints
from resolute.cli.display.output import Format, format_option
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.settings import Settings
from resolute.client.objects.checkpoint_ranking import ranked, with_validations


@click.command(name="list-checkpoints")
@click.argument("experiment_id", type=EXPERIMENT)
@click.option(
    "--best", type=click.IntRange(min=1), metavar="N", help="Only the best N by the searcher's metric."
)
@format_option
@click.pass_obj
def list_checkpoints(settings: Settings, experiment_id: str, best: int | None, output: Format) -> None:
    """List the checkpoints of an experiment, newest first; with --best, the best first."""
    services = settings.services()
    experiment = services.experiments.get(experiment_id)
    items = with_validations(
        services.checkpoints.of_experiment(experiment.uuid),
        services.trials.list(experiment.uuid),
        metrics=services.metrics,
    )
    if best is not None:
        rated = [item for item in items if item.value(experiment.searcher_metric) is not None]
        items = ranked(rated, experiment)[:best]
    print_checkpoints(items, metric=experiment.searcher_metric, output=output)
