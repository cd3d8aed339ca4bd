"""``resolute version``."""

from __future__ import annotations

import click

from resolute.cli.options.settings import Settings


def client_version() -> str:
    """The version of this distribution."""
    from importlib.metadata import version as installed_version

    return installed_version("resolute")


@click.command()
@click.pass_obj
def version(settings: Settings) -> None:
    """Print the versions of client and cluster."""
    from resolute.errors import ResoluteError

    click.echo(f"client   {client_version()}")
    try:
        cluster = settings.services().cluster.get()
    except ResoluteError as error:
        click.echo(f"cluster  not reached: {error}")
    else:
        endpoint = settings.endpoint()
        click.echo(f"cluster  {cluster.version} at {endpoint.address if endpoint else ''}")
