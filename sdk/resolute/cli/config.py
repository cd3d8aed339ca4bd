"""``resolute config``: defaults of all commands, and names of clusters."""

from __future__ import annotations

import os

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.client.connection.contexts import ClusterContext, Contexts
from resolute.client.preferences import KEYS, Preferences

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


@click.command(name="set-context")
@click.argument("name")
@click.option("--server", default="", metavar="HOST:PORT", help="Address of the cluster.")
@click.option("--user", default="", metavar="NAME", help="Act as this user there.")
@click.option(
    "--token-file", default="", type=click.Path(), help="File with the token [that of `resolute login`]."
)
@click.option(
    "--home",
    default="",
    type=click.Path(file_okay=False),
    help="RESOLUTE_HOME of a cluster of `resolute up` on this machine.",
)
def set_context(name: str, server: str, user: str, token_file: str, home: str) -> None:
    """Give a cluster the name NAME, for commands that take a context; replaces the context of that name."""
    context = ClusterContext(name=name, server=server, user=user, token_file=token_file, home=home)
    Contexts.of_home(os.environ).set(context)
    click.echo(f"context {name} is {server or home}")


_CONTEXT_COLUMNS: tuple[Column[ClusterContext], ...] = (
    Column("Name", lambda one: one.name),
    Column("Server", lambda one: one.server),
    Column("User", lambda one: one.user),
    Column("Token file", lambda one: one.token_file),
    Column("Home", lambda one: one.home),
)


@click.command(name="get-contexts")
@format_option
def get_contexts(output: Format) -> None:
    """List the named clusters."""
    print_items(Contexts.of_home(os.environ).all(), _CONTEXT_COLUMNS, output=output)


@click.command(name="delete-context")
@click.argument("name")
def delete_context(name: str) -> None:
    """Remove the name of a cluster; the cluster is not touched."""
    Contexts.of_home(os.environ).delete(name)
    click.echo(f"context {name} is removed")
