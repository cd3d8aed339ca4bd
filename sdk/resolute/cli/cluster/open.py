"""``resolute open``: the HTTP address of the cluster, in a browser."""

from __future__ import annotations

import os
import sys

import click

from resolute.cli.options.settings import Settings
from resolute.client.connection import discovery
from resolute.client.connection.endpoint import MASTER_VARIABLES
from resolute.client.connection.home import Home
from resolute.errors import FailedPreconditionError


@click.command(name="open")
@click.option("--print", "only_print", is_flag=True, help="Print the address; open no browser.")
@click.pass_obj
def open_(settings: Settings, only_print: bool) -> None:
    """Open the HTTP address of the cluster in a browser, and print it."""
    url = _url(settings)
    click.echo(url)
    if not only_print and sys.stdout.isatty():
        click.launch(url)


def _url(settings: Settings) -> str:
    given = settings.master or next(
        (os.environ[name] for name in MASTER_VARIABLES if os.environ.get(name)), ""
    )
    if given.lower().startswith(("http://", "https://")) and discovery.grpc_address(given):
        return given
    local = Home.from_environment(os.environ).read_endpoint()
    if local is not None and given in {"", local.address}:
        if local.http_url:
            return local.http_url
        raise FailedPreconditionError(
            "the cluster of this machine serves no HTTP, so there is no page to open; start it without "
            "--no-http, with `pip install 'resolute-train[gateway]'` and Python 3.11 or later"
        )
    raise FailedPreconditionError(
        f"the HTTP address of the cluster at {given} is not known; give it with -m http://HOST:PORT"
        if given
        else "no cluster is known: start one with `resolute up`, or name one with -m http://HOST:PORT"
    )
