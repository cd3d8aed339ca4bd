"""``resolute trial logs``."""

from __future__ import annotations

import click

from resolute.cli.display.log_lines import LogRequest, log_options, print_lines
from resolute.cli.options.identifiers import TRIAL
from resolute.cli.options.settings import Settings


@click.command()
@click.argument("trial_id", type=TRIAL)
@log_options
@click.pass_obj
def logs(settings: Settings, trial_id: str, request: LogRequest) -> None:
    """Show the logs of a trial, oldest first."""
    services = settings.services()
    print_lines(services, services.trials.get(trial_id), request)
