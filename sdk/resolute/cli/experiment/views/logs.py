"""``resolute experiment logs``."""

from __future__ import annotations

import click

from resolute.cli.display.log_lines import LogRequest, log_options, print_lines
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import TrialRecord
from resolute.client.services import Services
from resolute.errors import NotFoundError


@click.command()
@click.argument("experiment_id", type=EXPERIMENT)
@log_options
@click.pass_obj
def logs(settings: Settings, experiment_id: str, request: LogRequest) -> None:
    """Show the logs of an experiment's first trial; for other trials use `trial logs`."""
    show_first_trial(settings.services(), experiment_id, request)


def show_first_trial(services: Services, key: str, request: LogRequest) -> None:
    """Prints the wanted lines of an experiment's first trial.

    Raises:
        NotFoundError: It has none.
    """
    trial = _first_trial(services, key, wait=request.follow)
    print_lines(services, services.trials.get(trial.uuid), request)


def _first_trial(services: Services, key: str, *, wait: bool) -> TrialRecord:
    first = next(services.trials.list(key, limit=1), None)
    if first is not None:
        return first
    if wait:
        watch = services.experiments.watch(key, include_trials=True)
        try:
            for change in watch:
                if change.trials:
                    return min(change.trials, key=lambda trial: trial.id)
        finally:
            watch.cancel()
    remedy = "it ended without one" if wait else "wait for it with --follow"
    raise NotFoundError(f"experiment {key} has no trial yet; {remedy}")
