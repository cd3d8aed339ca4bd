"""``resolute checkpoint list``."""

from __future__ import annotations

import click

from resolute.cli.display.checkpoint_table import print_checkpoints
from resolute.cli.display.output import Format, format_option
from resolute.cli.options.identifiers import EXPERIMENT, TRIAL
from resolute.cli.options.settings import Settings
from resolute.client.objects.checkpoint_ranking import with_validations


@click.command(name="list")
@click.argument("experiment_id", required=False, type=EXPERIMENT)
@click.option("-t", "--trial", "trial_id", type=TRIAL, metavar="ID", help="Only checkpoints of this trial.")
@format_option
@click.pass_obj
def list_(settings: Settings, experiment_id: str | None, trial_id: str | None, output: Format) -> None:
    """List the checkpoints of an experiment or a trial, newest first."""
    if (experiment_id is None) == (trial_id is None):
        raise click.UsageError("Name either an experiment or, with --trial, a trial.")
    services = settings.services()
    if trial_id is not None:
        trials = [services.trials.get(trial_id)]
        experiment = services.experiments.get(trials[0].experiment_uuid)
        checkpoints = services.checkpoints.of_trial(trials[0].uuid)
    else:
        assert experiment_id is not None
        experiment = services.experiments.get(experiment_id)
        trials = list(services.trials.list(experiment.uuid))
        checkpoints = services.checkpoints.of_experiment(experiment.uuid)
    items = with_validations(checkpoints, trials, metrics=services.metrics)
    print_checkpoints(items, metric=experiment.searcher_metric, output=output)
