"""``resolute version``."""

from __future__ import annotations

from dataclasses import dataclass

import click

from resolute.cli.display.output import Format, print_document
from resolute.cli.display.rendering import rendering
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import ClusterRecord


@dataclass(frozen=True)
class Versions:
    """The versions of client and cluster that the command shows."""

    client: str
    cluster: ClusterRecord | None
    """None where it was not reached."""
    address: str


@click.command()
@click.pass_obj
def version(settings: Settings) -> None:
    """Print the versions of the client and the cluster."""
    from resolute.contracts import distribution
    from resolute.errors import ResoluteError

    try:
        cluster = settings.services().cluster.get()
    except ResoluteError as error:
        record, text = None, f"not reached: {error}"
    else:
        record, text = cluster, f"{cluster.version} at {_address(settings)}"
    if rendering() is not None:
        print_document(Versions(distribution.version(), record, _address(settings)), output=Format.YAML)
        return
    click.echo(f"client   {distribution.version()}")
    click.echo(f"cluster  {text}")


def _address(settings: Settings) -> str:
    endpoint = settings.endpoint()
    return endpoint.address if endpoint else ""
