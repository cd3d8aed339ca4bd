"""``resolute token create|list|revoke``."""

from __future__ import annotations

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.options.settings import Settings
from resolute.client.schema.accounts import TokenRecord

_DAY = 86_400
_COLUMNS: tuple[Column[TokenRecord], ...] = (
    Column("ID", lambda token: token.id),
    Column("User", lambda token: token.username),
    Column("Description", lambda token: token.description),
    Column("Created", lambda token: token.create_time),
    Column("Expires", lambda token: token.expire_time),
    Column("Revoked", lambda token: token.revoked),
)


@click.command()
@click.argument("username", default="", metavar="[USER]")
@click.option(
    "--days", type=click.IntRange(1, 365), default=30, show_default=True, help="Days for which it is valid."
)
@click.option("--description", default="", help="Purpose of the token.")
@click.pass_obj
def create(settings: Settings, username: str, days: int, description: str) -> None:
    """Create a token for yourself or USER and print it; it is never shown again.

    Programs pass it in the environment variable RESOLUTE_TOKEN.
    """
    token = settings.services().access.create_token(
        username, ttl_seconds=days * _DAY, description=description
    )
    click.echo(token.text)


@click.command(name="list")
@click.option("--user", "username", default="", help="Only tokens of this user.")
@format_option
@click.pass_obj
def list_(settings: Settings, username: str, output: Format) -> None:
    """List tokens that have not expired, newest first: your own, or all of them for admins."""
    print_items(settings.services().access.list_tokens(username), _COLUMNS, output=output)


@click.command()
@click.argument("token_id", metavar="ID")
@click.pass_obj
def revoke(settings: Settings, token_id: str) -> None:
    """Revoke the token ID before it expires. Services may accept it for up to half a minute more."""
    token = settings.services().access.revoke_token(token_id)
    click.echo(f"token {token.id} of {token.username} is revoked")
