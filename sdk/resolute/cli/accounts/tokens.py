"""``resolute token create|list|describe|edit|revoke``."""

from __future__ import annotations

import click

from resolute.cli.display.output import (
    Column,
    Format,
    format_option,
    json_option,
    print_document,
    print_items,
    print_json,
    yaml_option,
)
from resolute.cli.options import completions
from resolute.cli.options.settings import Settings
from resolute.client.schema.accounts import TokenRecord
from resolute.errors import NotFoundError

_DAY = 86_400
_COLUMNS: tuple[Column[TokenRecord], ...] = (
    Column("ID", lambda token: token.id, kept=True),
    Column("User", lambda token: token.username or f"service {token.service}"),
    Column("Kind", lambda token: token.kind),
    Column("Scope", lambda token: "read" if token.read_only else "all"),
    Column("Parent", lambda token: token.parent_id),
    Column("Description", lambda token: token.description),
    Column("Created", lambda token: token.create_time),
    Column("Expires", lambda token: token.expire_time),
    Column("Revoked", lambda token: token.revoked, kept=True),
)


@click.command()
@click.argument("username", default="", metavar="[USER]", shell_complete=completions.users)
@click.option(
    "-e",
    "--days",
    "--expiration-days",
    "days",
    type=click.IntRange(1, 365),
    default=30,
    show_default=True,
    help="Days for which it is valid.",
)
@click.option("-d", "--description", default="", help="Purpose of the token.")
@click.option(
    "--scope",
    type=click.Choice(["all", "read"]),
    default="all",
    show_default=True,
    help="What it may be used for: everything that the user may do, or reading as a viewer.",
)
@json_option
@click.option("--yaml", "as_yaml", is_flag=True, help="Print YAML.")
@click.pass_obj
def create(
    settings: Settings,
    username: str,
    days: int,
    description: str,
    scope: str,
    as_json: bool,
    as_yaml: bool,
) -> None:
    """Create a token for yourself or USER and print it; it is never shown again.

    Programs pass it in the environment variable RESOLUTE_TOKEN.
    """
    token = settings.services().access.create_token(
        username, ttl_seconds=days * _DAY, description=description, read_only=scope == "read"
    )
    facts = {"id": token.id, "token": token.text, "expire_time": token.expire_time}
    if as_json:
        print_json(facts)
    elif as_yaml:
        print_document(facts, output=Format.YAML)
    else:
        click.echo(token.text)


@click.command(name="list")
@click.argument("owner", default="", metavar="[USER]", shell_complete=completions.users)
@click.option("--user", "username", default="", help="The same as USER.")
@click.option("--show-inactive", is_flag=True, hidden=True)  # revoked ones are shown anyhow
@format_option
@yaml_option
@click.pass_obj
def list_(settings: Settings, owner: str, username: str, show_inactive: bool, output: Format) -> None:
    """List tokens that have not expired, newest first: those of USER, your own, or all of them for admins."""
    del show_inactive
    print_items(settings.services().access.list_tokens(owner or username), _COLUMNS, output=output)


@click.command()
@click.argument("token_ids", metavar="ID...", nargs=-1, required=True)
@format_option
@yaml_option
@click.pass_obj
def describe(settings: Settings, token_ids: tuple[str, ...], output: Format) -> None:
    """Show tokens that have not expired."""
    tokens = {token.id: token for token in settings.services().access.list_tokens()}
    for wanted in token_ids:
        if wanted not in tokens:
            raise NotFoundError(
                f"there is no token {wanted!r}, or it has expired; `resolute token list` lists all tokens",
                resource=f"token {wanted}",
            )
    print_items([tokens[wanted] for wanted in token_ids], _COLUMNS, output=output)


@click.command()
@click.argument("token_id", metavar="ID")
@click.option("-d", "--description", required=True, help="Purpose of the token.")
@json_option
@click.option("--yaml", "as_yaml", is_flag=True, help="Print YAML.")
@click.pass_obj
def edit(settings: Settings, token_id: str, description: str, as_json: bool, as_yaml: bool) -> None:
    """Change the description of the token ID. What it allows, and until when, stays as it is."""
    token = settings.services().access.describe_token(token_id, description)
    if as_json:
        print_json(token)
    elif as_yaml:
        print_document(token, output=Format.YAML)
    else:
        click.echo(f"token {token.id} is described as {token.description!r}")


@click.command()
@click.argument("token_id", metavar="ID")
@click.pass_obj
def revoke(settings: Settings, token_id: str) -> None:
    """Revoke the token ID before it expires. Services may accept it for up to half a minute more."""
    token = settings.services().access.revoke_token(token_id)
    holder = token.username or f"service {token.service}"
    click.echo(f"token {token.id} of {holder} is revoked")
