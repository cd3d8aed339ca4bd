"""``resolute template create|set|list|describe|remove``."""

from __future__ import annotations

from pathlib import Path

import click

from resolute.cli.display.output import Column, Format, format_option, print_items, print_yaml
from resolute.cli.options import completions
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import TemplateRecord
from resolute.client.submission.config import read_config
from resolute.errors import AlreadyExistsError

_COLUMNS: tuple[Column[TemplateRecord], ...] = (
    Column("Name", lambda template: template.name),
    Column("Fields", lambda template: sorted(template.config)),
)
_DETAILS: Column[TemplateRecord] = Column("Config", lambda template: template.config)
_FILE = click.argument("config", type=click.Path(path_type=Path))


@click.command()
@click.argument("name")
@_FILE
@click.pass_obj
def create(settings: Settings, name: str, config: Path) -> None:
    """Create the template NAME from the YAML file CONFIG; it must not exist yet."""
    cluster = settings.services().cluster
    if any(template.name == name for template in cluster.list_templates()):
        raise AlreadyExistsError(
            f"the template {name!r} exists already; `resolute template set` replaces it",
            resource=f"template {name}",
        )
    cluster.set_template(name, read_config(config))
    click.echo(f"template {name} is created")


@click.command(name="set")
@click.argument("name", shell_complete=completions.templates)
@_FILE
@click.pass_obj
def set_(settings: Settings, name: str, config: Path) -> None:
    """Create the template NAME from the YAML file CONFIG, or replace it."""
    settings.services().cluster.set_template(name, read_config(config))
    click.echo(f"template {name} is set")


@click.command(name="list")
@click.option("-d", "--details", is_flag=True, help="Show the whole templates.")
@format_option
@click.pass_obj
def list_(settings: Settings, details: bool, output: Format) -> None:
    """List templates."""
    columns = (_COLUMNS[0], _DETAILS) if details else _COLUMNS
    print_items(settings.services().cluster.list_templates(), columns, output=output)


@click.command()
@click.argument("name", shell_complete=completions.templates)
@click.pass_obj
def describe(settings: Settings, name: str) -> None:
    """Print the template NAME as YAML."""
    template = settings.services().cluster.get_template(name)
    print_yaml(template.config)


@click.command()
@click.argument("name", shell_complete=completions.templates)
@click.pass_obj
def remove(settings: Settings, name: str) -> None:
    """Delete the template NAME."""
    settings.services().cluster.delete_template(name)
    click.echo(f"template {name} is removed")
