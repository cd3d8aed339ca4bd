"""``resolute version``."""

from __future__ import annotations

import click

from resolute.cli.options.settings import Settings


@click.command()
@click.pass_obj
def version(settings: Settings) -> None:
    """Print the versions of the client and the cluster."""
    from resolute.contracts import distribution
    from resolute.errors import ResoluteError

    click.echo(f"client   {distribution.version()}")
    try:
        cluster = settings.services().cluster.get()
    except ResoluteError as error:
        click.echo(f"cluster  not reached: {error}")
    else:
        endpoint = settings.endpoint()
        click.echo(f"cluster  {cluster.version} at {endpoint.address if endpoint else ''}")
