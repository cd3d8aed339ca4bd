"""``resolute experiment continue`` and ``resolute experiment fork``."""

from __future__ import annotations

import click

from resolute.cli.options.continuation import ContinuationOptions, confirm_and_continue, continuation_options
from resolute.cli.options.identifiers import EXPERIMENT

_ID = click.argument("experiment_id", metavar="ID", type=EXPERIMENT)


@click.command("continue")
@_ID
@continuation_options
@click.pass_context
def continue_(ctx: click.Context, experiment_id: str, choices: ContinuationOptions) -> None:
    """Continue an experiment with its trials, their steps and its search.

    After a failure or a cancellation, trials that did not complete are retried from their checkpoints.
    After completion, give it more: --config searcher.max_trials=32, or a longer searcher.max_length.
    """
    title = f"Experiment {experiment_id} goes on as itself:"
    confirm_and_continue(
        ctx,
        lambda services: services.continuations.experiment,
        experiment_id,
        choices,
        title=title,
        new=False,
    )


@click.command()
@_ID
@continuation_options
@click.pass_context
def fork(ctx: click.Context, experiment_id: str, choices: ContinuationOptions) -> None:
    """Create an experiment with the config and the code of another, but without its weights."""
    title = f"A new experiment begins like experiment {experiment_id}:"
    confirm_and_continue(
        ctx, lambda services: services.continuations.fork, experiment_id, choices, title=title, new=True
    )
