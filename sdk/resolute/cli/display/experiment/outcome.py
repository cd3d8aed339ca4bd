"""The outcome of an experiment, as a message and as the command's exit code."""

from __future__ import annotations

from contextlib import suppress

import click

from resolute.cli.display.terminal import neutralised
from resolute.cli.display.tracebacks import fold_text
from resolute.client.schema.records import ExperimentRecord
from resolute.client.schema.states import ExperimentKind, ExperimentState
from resolute.client.services import Services
from resolute.errors import UnavailableError

_ASKED = 100
"""Trials whose values are looked at."""


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


def tell_of_no_metric(ctx: click.Context, services: Services, experiment: ExperimentRecord) -> None:
    """Says of a training that completed without its metric that nothing of it can be compared.

    That is no failure of a single script, which may well report nothing; a search whose every value is NaN or
    infinite has compared nothing, and the command exits with 1.

    Args:
        ctx: The command's context.
        services: The cluster.
        experiment: The experiment at its end.
    """
    unwarned = experiment.state is ExperimentState.COMPLETED and not experiment.warning
    if not unwarned or experiment.kind is not ExperimentKind.SEARCH or not experiment.searcher_metric:
        return
    with suppress(UnavailableError):
        if services.metrics.best(experiment.uuid).experiment is None:
            metric = neutralised(experiment.searcher_metric)
            click.echo(
                f"no validation reported a finite number for searcher.metric {metric!r}: "
                "the script exited with 0, and no checkpoint is the best"
            )
            if _compared_nothing(services, experiment):
                ctx.exit(1)


def _compared_nothing(services: Services, experiment: ExperimentRecord) -> bool:
    # Trials may also complete operations with the value, and never validate.
    if experiment.searcher_name in {"single", "custom"}:
        return False
    # The first trials say what all report: a search may have a hundred thousand.
    trials = [trial.uuid for trial in services.trials.list(experiment.uuid, limit=_ASKED)]
    metric = experiment.searcher_metric
    return bool(services.metrics.summaries(trials, group="validation", names=[metric]))
