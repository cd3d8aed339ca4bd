"""``resolute trial media``."""

from __future__ import annotations

from pathlib import Path

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.options.identifiers import TRIAL
from resolute.cli.options.settings import Settings
from resolute.client.objects.media import Media
from resolute.client.schema.records import MediaRecord
from resolute.contracts.spool.media_formats import MediaKind

_COLUMNS: tuple[Column[MediaRecord], ...] = (
    Column("ID", lambda one: one.media_id, right=True),
    Column("Steps", lambda one: one.steps_completed, right=True),
    Column("Run", lambda one: one.run, right=True),
    Column("Name", lambda one: one.name),
    Column("Kind", lambda one: one.kind.value),
    Column("Type", lambda one: one.content_type),
    Column("Bytes", lambda one: one.size, right=True),
    Column("Caption", lambda one: one.caption),
)


@click.command()
@click.argument("trial_id", type=TRIAL)
@click.option("--name", default="", help="Only media of this name [all].")
@click.option(
    "--kind", type=click.Choice([kind.value for kind in MediaKind]), help="Only media of this kind [all]."
)
@click.option(
    "-o",
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Fetch them into this directory, a directory for each name [only list them].",
)
@format_option
@click.pass_obj
def media(
    settings: Settings,
    trial_id: str,
    name: str,
    kind: str | None,
    output_dir: Path | None,
    output: Format,
) -> None:
    """Show or fetch the images, histograms, texts, tables, sounds and figures that a trial logged."""
    services = settings.services()
    trial = services.trials.get(trial_id)
    found = services.media.list(trial.uuid, name=name, kind=None if kind is None else MediaKind(kind))
    if output_dir is None:
        print_items(list(found), _COLUMNS, output=output)
    else:
        for record in found:
            click.echo(Media(services, record).download(output_dir))
    dropped = services.media.dropped(trial.uuid)
    if dropped:
        click.echo(f"warning: trial {trial.id}: {dropped}", err=True)
