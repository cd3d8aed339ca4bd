"""``resolute experiment move``."""

from __future__ import annotations

import click

from resolute.cli.identifiers import EXPERIMENT
from resolute.cli.settings import Settings


@click.command()
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.argument("workspace")
@click.argument("project")
@click.pass_obj
def move(settings: Settings, experiment_id: str, workspace: str, project: str) -> None:
    """Move an experiment to PROJECT of WORKSPACE; to another workspace only when it has ended."""
    settings.services().workspaces.move(experiment_id, workspace=workspace, project=project)
    click.echo(f"experiment {experiment_id} belongs to {workspace}/{project}")
