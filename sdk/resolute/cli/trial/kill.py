"""``resolute trial kill``."""

from __future__ import annotations

import click

from resolute.cli.failures import explain
from resolute.cli.options.identifiers import TRIALS, keys_argument
from resolute.cli.options.settings import Settings
from resolute.errors import AuthError, ResoluteError, UnavailableError


@click.command()
@keys_argument("trial_ids", metavar="ID[,ID...]", type_=TRIALS)
@click.pass_context
def kill(ctx: click.Context, trial_ids: tuple[str, ...]) -> None:
    """Stop trials immediately; their experiments continue."""
    settings = ctx.ensure_object(Settings)
    failed = False
    for key in trial_ids:
        try:
            record = settings.services().trials.kill(key)
        except (AuthError, UnavailableError):
            raise  # the others would fail alike
        except ResoluteError as error:
            click.echo(explain(error, settings), err=True)
            failed = True
        else:
            click.echo(f"trial {record.id} is being killed")
    if failed:
        ctx.exit(1)
