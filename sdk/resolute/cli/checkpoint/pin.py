"""``resolute checkpoint pin`` and ``resolute checkpoint unpin``."""

from __future__ import annotations

import click

from resolute.cli.options.identifiers import CHECKPOINTS, keys_argument
from resolute.cli.options.settings import Settings


@click.command()
@keys_argument("uuids", metavar="UUID[,UUID...]", type_=CHECKPOINTS)
@click.pass_obj
def pin(settings: Settings, uuids: tuple[str, ...]) -> None:
    """Protect checkpoints: no user and no policy can delete them until they are unpinned."""
    settings.services().checkpoints.pin(uuids, pinned=True)
    for uuid in uuids:
        click.echo(f"checkpoint {uuid} is pinned")


@click.command()
@keys_argument("uuids", metavar="UUID[,UUID...]", type_=CHECKPOINTS)
@click.pass_obj
def unpin(settings: Settings, uuids: tuple[str, ...]) -> None:
    """Remove the protection of pinned checkpoints."""
    settings.services().checkpoints.pin(uuids, pinned=False)
    for uuid in uuids:
        click.echo(f"checkpoint {uuid} is not pinned")
