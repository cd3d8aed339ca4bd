"""Downloads a checkpoint and prints its directory."""

from __future__ import annotations

from pathlib import Path

import click

from resolute.cli.display.transfer_progress import transfer_progress
from resolute.client.downloads.checkpoint_files import download
from resolute.client.downloads.sources import DownloadMode
from resolute.client.schema.records import CheckpointRecord
from resolute.client.services import Services

DOWNLOADS = Path("downloads")
"""Where files go unless the command line says otherwise; submissions leave it out."""


def fetch(
    services: Services,
    record: CheckpointRecord,
    destination: Path | None,
    *,
    mode: DownloadMode = DownloadMode.AUTO,
    quiet: bool,
) -> None:
    """Fetches a checkpoint and prints where it is.

    Args:
        services: The cluster.
        record: The checkpoint.
        destination: Directory to fetch into; None for ``downloads/<uuid>``.
        mode: Which way the bytes come.
        quiet: Print only the directory.
    """
    target = destination if destination is not None else DOWNLOADS / record.uuid
    registry = services.checkpoints
    if quiet:
        click.echo(download(record, target, registry=registry, mode=mode))
    else:
        with transfer_progress(
            f"checkpoint {record.uuid} is downloaded", total=record.total_size
        ) as progress:
            path = download(record, target, registry=registry, mode=mode, progress=progress)
        click.echo(f"checkpoint {record.uuid} (step {record.steps_completed}) is in {path}")
