"""``resolute config set|get|list``."""

from __future__ import annotations

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.preferences import KEYS, Preferences

_COLUMNS: tuple[Column[dict[str, str]], ...] = (
    Column("Setting", lambda row: row["setting"]),
    Column("Value", lambda row: row["value"]),
    Column("Meaning", lambda row: row["meaning"]),
)


@click.command(name="set")
@click.argument("key", type=click.Choice(list(KEYS)))
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Set a default for all commands; an empty VALUE removes it."""
    preferences = Preferences.of_home()
    preferences.set(key, value)
    click.echo(f"{key} is {value} ({preferences.path})" if value else f"{key} is no longer set")


@click.command()
@click.argument("key", type=click.Choice(list(KEYS)))
@click.pass_context
def get(ctx: click.Context, key: str) -> None:
    """Print a default; exits with 1 if it is not set."""
    value = Preferences.of_home().get(key)
    if not value:
        ctx.exit(1)
    click.echo(value)


@click.command(name="list")
@format_option
def list_(output: Format) -> None:
    """List all defaults with their values."""
    known = Preferences.of_home().all()
    rows = [
        {"setting": key, "value": known.get(key, ""), "meaning": meaning} for key, meaning in KEYS.items()
    ]
    print_items(rows, _COLUMNS, output=output)
