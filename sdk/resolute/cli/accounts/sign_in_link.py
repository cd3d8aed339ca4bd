"""``resolute user sign-in-link``."""

from __future__ import annotations

from urllib.parse import urlencode

import click

from resolute.cli.options.page_url import page_url
from resolute.cli.options.settings import Settings


@click.command()
@click.option(
    "--url",
    default="",
    metavar="URL",
    help="URL of the gateway. [default: the one that names the cluster, or that of this machine]",
)
@click.pass_obj
def sign_in_link(settings: Settings, url: str) -> None:
    """Print a link that signs a browser in as you: once, within ten minutes."""
    base = url or page_url(settings)
    code = settings.services().access.create_sign_in_code()
    click.echo(f"{base.rstrip('/')}/sign-in?{urlencode({'code': code})}")
