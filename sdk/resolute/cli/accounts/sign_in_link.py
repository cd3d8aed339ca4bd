"""``resolute user sign-in-link``."""

from __future__ import annotations

from urllib.parse import urlencode

import click

from resolute.cli.options.settings import Settings
from resolute.client.connection.home import Home
from resolute.errors import FailedPreconditionError


@click.command()
@click.option("--url", default="", metavar="URL", help="URL of the gateway. [default: that of this machine]")
@click.pass_obj
def sign_in_link(settings: Settings, url: str) -> None:
    """Print a link that signs a browser in as you: once, within ten minutes."""
    services = settings.services()
    base = url or _local_url(services.session.endpoint.address)
    code = services.access.create_sign_in_code()
    click.echo(f"{base.rstrip('/')}/sign-in?{urlencode({'code': code})}")


def _local_url(address: str) -> str:
    """The gateway of the cluster of this machine, if that is the one that is asked."""
    import os

    local = Home.from_environment(os.environ).read_endpoint()
    if local is None or local.address != address or not local.http_url:
        raise FailedPreconditionError(
            f"the URL of the gateway of {address} is not known here; name it by --url"
        )
    return local.http_url
