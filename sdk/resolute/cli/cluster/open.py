"""``resolute open``: the HTTP address of the cluster, in a browser."""

from __future__ import annotations

import sys

import click

from resolute.cli.options.page_url import page_url
from resolute.cli.options.settings import Settings


@click.command(name="open")
@click.option("--print", "only_print", is_flag=True, help="Print the address; open no browser.")
@click.pass_obj
def open_(settings: Settings, only_print: bool) -> None:
    """Open the HTTP address of the cluster in a browser, and print it."""
    url = page_url(settings)
    click.echo(url)
    if not only_print and sys.stdout.isatty():
        click.launch(url)
