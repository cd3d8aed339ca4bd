"""``resolute trial continue``."""

from __future__ import annotations

import click

from resolute.cli.options.continuation import ContinuationOptions, confirm_and_continue, continuation_options
from resolute.cli.options.identifiers import TRIAL


@click.command("continue")
@click.argument("trial_id", metavar="ID", type=TRIAL)
@continuation_options
@click.pass_context
def continue_(ctx: click.Context, trial_id: str, choices: ContinuationOptions) -> None:
    """Create an experiment with one trial, which starts from the weights of trial ID.

    It uses the hyperparameters of that trial, and the other fields of its experiment's config.
    """
    title = f"A new experiment begins from the weights of trial {trial_id}:"
    confirm_and_continue(
        ctx, lambda services: services.continuations.trial, trial_id, choices, title=title, new=True
    )
