"""The outcome of an experiment, as a message and as the command's exit code."""

from __future__ import annotations

import click

from resolute.cli.display.tracebacks import fold_text
from resolute.client.schema.records import ExperimentRecord
from resolute.client.schema.states import ExperimentState


def exit_by_state(ctx: click.Context, experiment: ExperimentRecord) -> None:
    """Exits with 0 if the experiment completed and its trials reported its metric, else with 1."""
    ctx.exit(0 if experiment.state is ExperimentState.COMPLETED and not experiment.warning else 1)


def describe_outcome(experiment: ExperimentRecord) -> str:
    """Writes how an experiment ended."""
    text = f"experiment {experiment.id} {experiment.state.name}"
    if experiment.failure:
        text += f": {fold_text(experiment.failure)}"
    return f"{text}\nwarning: {experiment.warning}" if experiment.warning else text
