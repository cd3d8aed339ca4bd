"""``resolute checkpoint delete`` and ``resolute checkpoint rm``."""

from __future__ import annotations

import click

from resolute.cli.options.confirmation import confirm
from resolute.cli.options.identifiers import CHECKPOINTS, keys_argument
from resolute.cli.options.settings import Settings


@click.command()
@keys_argument("uuids", metavar="UUID[,UUID...]", type_=CHECKPOINTS)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def delete(settings: Settings, uuids: tuple[str, ...], yes: bool) -> None:
    """Delete checkpoints with all their files. Either all of them are deleted or none."""
    _remove(settings, uuids, globs=(), yes=yes)


@click.command()
@keys_argument("uuids", metavar="UUID[,UUID...]", type_=CHECKPOINTS)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--glob",
    "globs",
    multiple=True,
    metavar="PATTERN",
    help="Delete only files whose path within the checkpoint matches; ** matches directories. Repeatable.",
)
@click.pass_obj
def rm(settings: Settings, uuids: tuple[str, ...], yes: bool, globs: tuple[str, ...]) -> None:
    """Delete checkpoints, or with --glob only some of their files."""
    _remove(settings, uuids, globs=globs, yes=yes)


def _remove(settings: Settings, uuids: tuple[str, ...], *, globs: tuple[str, ...], yes: bool) -> None:
    what = f"the files that match {' or '.join(globs)} from" if globs else "all files of"
    if not yes:
        names = f"checkpoint {uuids[0]}" if len(uuids) == 1 else f"{len(uuids)} checkpoints"
        confirm(f"Remove {what} {names}?")
    services = settings.services()
    services.checkpoints.delete(uuids, globs=globs)
    for uuid in uuids:
        record = services.checkpoints.get(uuid)
        click.echo(f"checkpoint {uuid} is {record.state.name}")
