"""``resolute checkpoint verify``."""

from __future__ import annotations

import click

from resolute.cli.options.identifiers import CHECKPOINTS, keys_argument
from resolute.cli.options.settings import Settings
from resolute.client.downloads.sources import DownloadMode
from resolute.client.downloads.verification import verify as read_files
from resolute.contracts.sizes import human_size


@click.command()
@keys_argument("uuids", metavar="UUID[,UUID...]", type_=CHECKPOINTS)
@click.option("-v", "--verbose", is_flag=True, help="Print every file, not only the damaged ones.")
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in DownloadMode]),
    default=DownloadMode.AUTO.value,
    show_default=True,
    help="Read directly from the store, through the service, or whichever works.",
)
@click.pass_context
def verify(ctx: click.Context, uuids: tuple[str, ...], verbose: bool, mode: str) -> None:
    """Read checkpoints from their store and compare their digests with those that were committed.

    Exits with 1 if a file is damaged or missing.
    """
    services = ctx.ensure_object(Settings).services()
    damaged = False
    for uuid in uuids:
        record = services.checkpoints.get(uuid)
        files = bytes_ = faults = unknown = 0
        for checked in read_files(record, registry=services.checkpoints, mode=DownloadMode(mode)):
            files, bytes_ = files + 1, bytes_ + checked.size
            unknown += not checked.compared
            if checked.fault:
                faults += 1
                click.echo(f"{checked.path} {checked.fault}", err=True)
            elif verbose:
                click.echo(f"{checked.path} is as it was committed")
        damaged = damaged or faults > 0
        result = f"{faults} of {files} files are damaged" if faults else f"{files} files are sound"
        note = f", {unknown} of them by size only: they have no digest" if unknown else ""
        click.echo(f"checkpoint {uuid} ({human_size(bytes_)}): {result}{note}")
    if damaged:
        ctx.exit(1)
