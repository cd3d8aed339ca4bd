"""The outcome of an experiment, as a message and as the command's exit code."""

from __future__ import annotations

import click

from resolute.cli.display.tracebacks import fold_text
from resolute.client.schema.records import ExperimentRecord
from resolute.client.schema.states import ExperimentState


def exit_by_state(ctx: click.Context, experiment: ExperimentRecord, *, warned_too: bool = True) -> None:
    """Exits with 0 if the experiment completed, else with 1.

    Args:
        ctx: The command's context.
        experiment: The experiment at its end.
        warned_too: Whether it is no success if no trial reported its metric.
    """
    warned = warned_too and bool(experiment.warning)
    ctx.exit(0 if experiment.state is ExperimentState.COMPLETED and not warned else 1)


def is_stuck(experiment: ExperimentRecord) -> bool:
    """Whether it is paused and warns of something: it will not end before its user has decided."""
    return experiment.state is ExperimentState.PAUSED and bool(experiment.warning)


def describe_outcome(experiment: ExperimentRecord) -> str:
    """Writes how an experiment ended, or where it stands."""
    text = f"experiment {experiment.id} {experiment.state.name}"
    if experiment.failure:
        text += f": {fold_text(experiment.failure)}"
    return f"{text}\nwarning: {experiment.warning}" if experiment.warning else text
