"""``resolute alert set|describe|delete|test|log``."""

from __future__ import annotations

from pathlib import Path

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import AlertDeliveryRecord
from resolute.client.submission.config import read_config

_WORKSPACE = click.option(
    "-w", "--workspace-name", "workspace", help="The alerts of this workspace; without it the cluster's."
)
_COLUMNS: tuple[Column[AlertDeliveryRecord], ...] = (
    Column("Raised", lambda item: item.create_time),
    Column("Endpoint", lambda item: item.endpoint),
    Column("Title", lambda item: item.title),
    Column("Delivered", lambda item: item.deliver_time),
    Column("Attempts", lambda item: item.attempts, right=True),
    Column("Sent again", lambda item: item.due_time),
    Column("Problem", lambda item: item.problem),
    Column("Key", lambda item: item.key),
)


@click.command(name="set")
@click.argument("alerts_file", type=click.Path(path_type=Path))
@_WORKSPACE
@click.pass_obj
def set_(settings: Settings, alerts_file: Path, workspace: str | None) -> None:
    """Set the alerts of a workspace from the YAML file ALERTS_FILE: endpoints and rules.

    They replace all that were set there. A secret that reads "(hidden)" stays as it is.
    """
    settings.services().alerts.set(read_config(alerts_file), workspace=workspace)
    click.echo(f"the alerts of {_whose(workspace)} are set")


@click.command()
@_WORKSPACE
@click.pass_obj
def describe(settings: Settings, workspace: str | None) -> None:
    """Print the alerts of a workspace as YAML, without secrets."""
    click.echo(settings.services().alerts.get(workspace=workspace), nl=False)


@click.command()
@_WORKSPACE
@click.pass_obj
def delete(settings: Settings, workspace: str | None) -> None:
    """Delete the alerts of a workspace."""
    settings.services().alerts.set("", workspace=workspace)
    click.echo(f"the alerts of {_whose(workspace)} are deleted")


@click.command()
@click.argument("endpoint")
@_WORKSPACE
@click.pass_obj
def test(settings: Settings, endpoint: str, workspace: str | None) -> None:
    """Send an alert to ENDPOINT now."""
    settings.services().alerts.test(endpoint, workspace=workspace)
    click.echo(f"endpoint {endpoint} took the alert")


@click.command()
@_WORKSPACE
@format_option
@click.pass_obj
def log(settings: Settings, workspace: str | None, output: Format) -> None:
    """Show the latest deliveries, newest first."""
    print_items(settings.services().alerts.deliveries(workspace=workspace), _COLUMNS, output=output)


def _whose(workspace: str | None) -> str:
    return "the cluster" if workspace is None else f"workspace {workspace}"
