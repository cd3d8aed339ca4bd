"""``resolute secret set|list|delete``."""

from __future__ import annotations

import sys

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import SecretRecord
from resolute.errors import InvalidArgumentError

_WORKSPACE = click.option(
    "-w", "--workspace-name", "workspace", help="A secret of this workspace; without it one of your own."
)
_COLUMNS: tuple[Column[SecretRecord], ...] = (
    Column("Name", lambda item: item.name),
    Column("Set", lambda item: item.update_time),
    Column("First set", lambda item: item.create_time),
)


@click.command(name="set")
@click.argument("name")
@_WORKSPACE
@click.pass_obj
def set_(settings: Settings, name: str, workspace: str | None) -> None:
    """Set secret NAME to what standard input has, or to what you type.

    A newline at the end of standard input is left out.
    """
    settings.services().secrets.set(name, read_value(), workspace=workspace)
    click.echo(f"{_label(name, workspace)} is set")


@click.command(name="list")
@_WORKSPACE
@format_option
@click.pass_obj
def list_(settings: Settings, workspace: str | None, output: Format) -> None:
    """List secrets, without their values."""
    print_items(settings.services().secrets.list(workspace=workspace), _COLUMNS, output=output)


@click.command()
@click.argument("name")
@_WORKSPACE
@click.pass_obj
def delete(settings: Settings, name: str, workspace: str | None) -> None:
    """Delete secret NAME."""
    settings.services().secrets.delete(name, workspace=workspace)
    click.echo(f"{_label(name, workspace)} is deleted")


def read_value() -> str:
    """Reads a value; never from the command line, which everybody on the machine can read.

    Raises:
        InvalidArgumentError: It is not text.
    """
    if sys.stdin.isatty():
        typed: str = click.prompt("Value", hide_input=True, confirmation_prompt=True, err=True)
        return typed
    try:
        # By bytes: text would come with other ends of lines than it has.
        return sys.stdin.buffer.read().removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError as failure:
        raise InvalidArgumentError(
            "the value is not text in UTF-8: set what `base64 FILE` prints, and decode it in the script"
        ) from failure


def _label(name: str, workspace: str | None) -> str:
    return f"your secret {name}" if workspace is None else f"secret {name} of workspace {workspace}"
