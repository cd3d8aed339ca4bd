"""``resolute experiment wait``."""

from __future__ import annotations

import click

from resolute.cli.display.experiment.outcome import (
    describe_outcome,
    exit_by_state,
    is_stuck,
    tell_of_no_metric,
)
from resolute.cli.main import INTERRUPTED
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.settings import Settings
from resolute.client.schema.states import ExperimentState


@click.command()
@click.argument("experiment_id", type=EXPERIMENT)
@click.option("--polling-interval", type=float, default=5.0, hidden=True)  # the service tells at once
@click.pass_context
def wait(ctx: click.Context, experiment_id: str, polling_interval: float) -> None:
    """Wait until an experiment ends; exits with 0 only if it completes.

    It does not wait for one that is paused since no trial reports its metric.
    """
    del polling_interval
    services = ctx.ensure_object(Settings).services()
    record = services.experiments.get(experiment_id)
    watch = services.experiments.watch(record.uuid)
    try:
        for change in watch:
            if change.experiment is None:
                continue
            paused = change.experiment.state is ExperimentState.PAUSED and not change.experiment.warning
            if paused and record.state is not ExperimentState.PAUSED:
                click.echo(f"experiment {record.id} is paused; still waiting", err=True)
            record = change.experiment
            if is_stuck(record):
                break
    except KeyboardInterrupt:
        click.echo(f"stopped waiting; experiment {record.id} goes on", err=True)
        ctx.exit(INTERRUPTED)
    finally:
        watch.cancel()
    click.echo(describe_outcome(record))
    tell_of_no_metric(ctx, services, record)
    exit_by_state(ctx, record)
