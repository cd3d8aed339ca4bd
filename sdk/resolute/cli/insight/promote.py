"""``resolute promote``."""

from __future__ import annotations

import os

import click

from resolute.cli.display.output import json_option, print_json
from resolute.cli.options.identifiers import TRIAL
from resolute.cli.options.settings import Settings
from resolute.client.connection.contexts import Contexts
from resolute.client.connection.home import Home


@click.command()
@click.argument("trial_id", metavar="ID", type=TRIAL)
@click.option(
    "--to",
    "context",
    required=True,
    metavar="CONTEXT",
    help="Context of the other cluster: see `resolute config set-context`.",
)
@click.option(
    "--config",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a config field of the experiment there (repeatable).",
)
@click.option("--paused", is_flag=True, help="Create the experiment there paused.")
@json_option
@click.pass_obj
def promote(
    settings: Settings, trial_id: str, context: str, overrides: tuple[str, ...], paused: bool, as_json: bool
) -> None:
    """Let trial ID go on at its latest checkpoint on another cluster.

    Its metrics, its logs and the checkpoint are copied, every byte of which is compared there. Then its code
    is submitted there, to start from the copy. This cluster keeps everything. An interrupted command goes on
    when it is repeated, and nothing is copied twice. A running trial is refused: pause its experiment first.
    """
    from resolute.client.services import Services
    from resolute.promotion.promote import promote as move

    chosen = Contexts.of_home(os.environ).get(context)
    directory = Home.from_environment(os.environ).path / "promotions"
    with chosen.session(os.environ) as session:
        done = move(
            settings.services(),
            Services(session),
            trial_id,
            directory=directory,
            overrides=overrides,
            paused=paused,
        )
    for warning in done.warnings:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        print_json(done)
        return
    click.echo(f"{context}: trial {done.trial} has its history and checkpoint {done.checkpoint}")
    if done.experiment is not None:
        click.echo(f"{context}: experiment {done.experiment} continues from it")
    else:
        click.echo(
            "its command is not known, as it ran outside of a cluster; submit its script there with "
            f"`--config searcher.source_checkpoint_uuid={done.checkpoint}`"
        )
