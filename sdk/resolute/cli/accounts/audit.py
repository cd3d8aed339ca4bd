"""``resolute audit``."""

from __future__ import annotations

from itertools import islice

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.options.settings import Settings
from resolute.client.schema.accounts import AuditRecord

_COLUMNS: tuple[Column[AuditRecord], ...] = (
    Column("Time", lambda row: row.time),
    Column("Actor", lambda row: row.actor),
    Column("Action", lambda row: row.action),
    Column("Resource", lambda row: row.resource),
    Column("Detail", lambda row: row.detail),
)


@click.command()
@click.option("--actor", default="", help="Only changes by this user or service.")
@click.option(
    "--resource", default="", metavar="'NOUN NAME'", help="Only changes to this object: 'experiment 7'."
)
@click.option(
    "-n", "--limit", type=click.IntRange(1), default=50, show_default=True, help="Maximum number of rows."
)
@format_option
@click.pass_obj
def audit(settings: Settings, actor: str, resource: str, limit: int, output: Format) -> None:
    """List who changed what, latest first."""
    rows = settings.services().access.list_audit(actor=actor, resource=resource)
    print_items(islice(rows, limit), _COLUMNS, output=output)
