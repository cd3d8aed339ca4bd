"""``resolute master config show`` and ``resolute master logs``."""

from __future__ import annotations

import click

from resolute.cli.display.output import json_option, print_json, print_yaml
from resolute.cli.options.settings import Settings


@click.command(name="show")
@json_option
@click.option("--yaml", "as_yaml", is_flag=True, help="Print YAML, which is the default.")
@click.pass_obj
def show_config(settings: Settings, as_json: bool, as_yaml: bool) -> None:
    """Print the settings that the server was started with, without passwords and keys."""
    del as_yaml
    config = settings.services().cluster.server_config()
    if as_json:
        print_json(config)
    else:
        print_yaml(config)


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Print new lines as they are logged, until Ctrl-C.")
@click.option("--tail", type=click.IntRange(1, 1000), help="Number of last lines to print.")
@click.pass_obj
def logs(settings: Settings, follow: bool, tail: int | None) -> None:
    """Print the last 1000 lines that the server logged since it started.

    The server is the process of the experiments service; `resolute up` runs all services in it.
    """
    for line in settings.services().cluster.server_log(tail=tail or 0, follow=follow):
        click.echo(line)
