"""``resolute checkpoint download``."""

from __future__ import annotations

from pathlib import Path

import click

from resolute.cli.checkpoint.fetch import fetch
from resolute.cli.options.identifiers import CHECKPOINT
from resolute.cli.options.settings import Settings
from resolute.client.downloads.sources import DownloadMode


@click.command()
@click.argument("uuid", type=CHECKPOINT)
@click.option(
    "-o", "--output-dir", type=click.Path(path_type=Path), help="Target directory [downloads/UUID]."
)
@click.option("-q", "--quiet", is_flag=True, help="Print only the directory.")
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in DownloadMode]),
    default=DownloadMode.AUTO.value,
    show_default=True,
    help="Directly from the store, through the service, or whichever works.",
)
@click.pass_obj
def download(settings: Settings, uuid: str, output_dir: Path | None, quiet: bool, mode: str) -> None:
    """Download the files of a checkpoint; an interrupted download resumes where it stopped."""
    services = settings.services()
    fetch(services, services.checkpoints.get(uuid), output_dir, mode=DownloadMode(mode), quiet=quiet)
