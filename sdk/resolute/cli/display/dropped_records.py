"""Warnings of commands about log lines and reports that were dropped because of a limit."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import click

from resolute.client.services import Services
from resolute.errors import ResoluteError


def warn_of_dropped_records(services: Services, experiment_uuid: str, trials: Mapping[str, int]) -> None:
    """Writes to standard error what was dropped of trials.

    Args:
        services: The cluster.
        experiment_uuid: UUID of their experiment.
        trials: Their numbers by UUID.
    """
    for find in (services.logs.dropped, services.metrics.dropped):
        # What was asked for is shown whether or not this is known.
        with suppress(ResoluteError):
            for trial_uuid, explanation in find(experiment_uuid).items():
                if trial_uuid in trials:
                    click.echo(f"warning: trial {trials[trial_uuid]}: {explanation}", err=True)
