"""``resolute user list|create|set-role|activate|deactivate|change-password``."""

from __future__ import annotations

import click

from resolute.cli.accounts.passwords import ask, password_option
from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.options.settings import Settings
from resolute.client.schema.accounts import UserRecord, UserRole

_COLUMNS: tuple[Column[UserRecord], ...] = (
    Column("Name", lambda user: user.name),
    Column("Role", lambda user: user.role),
    Column("Active", lambda user: user.active),
    Column("Password", lambda user: user.has_password),
    Column("Created", lambda user: user.create_time),
)
_ROLE = click.Choice([role.value for role in UserRole])


@click.command(name="list")
@format_option
@click.pass_obj
def list_(settings: Settings, output: Format) -> None:
    """List users."""
    print_items(settings.services().access.list_users(), _COLUMNS, output=output)


@click.command()
@click.argument("name")
@click.option("--role", type=_ROLE, default=UserRole.EDITOR.value, show_default=True)
@click.pass_obj
def create(settings: Settings, name: str, role: str) -> None:
    """Create the user NAME, who can use tokens, and log in once a password is set."""
    user = settings.services().access.create_user(name, UserRole(role))
    click.echo(f"user {user.name} is created as {user.role.value}")


@click.command()
@click.argument("name")
@click.argument("role", type=_ROLE)
@click.pass_obj
def set_role(settings: Settings, name: str, role: str) -> None:
    """Give the user NAME the role ROLE; the tokens of the user are revoked."""
    user = settings.services().access.update_user(name, role=UserRole(role))
    click.echo(f"user {user.name} is now {user.role.value}")


@click.command()
@click.argument("name")
@click.pass_obj
def activate(settings: Settings, name: str) -> None:
    """Reactivate the user NAME."""
    settings.services().access.update_user(name, active=True)
    click.echo(f"user {name} is active")


@click.command()
@click.argument("name")
@click.pass_obj
def deactivate(settings: Settings, name: str) -> None:
    """Deactivate the user NAME: the tokens of the user are revoked. Experiments continue."""
    settings.services().access.update_user(name, active=False)
    click.echo(f"user {name} is deactivated")


@click.command()
@click.argument("name", default="")
@password_option
@click.pass_obj
def change_password(settings: Settings, name: str, piped: bool) -> None:
    """Change the password of the user NAME, or your own; the tokens of the user are revoked."""
    services = settings.services()
    name = name or services.cluster.current_user()
    password = ask(f"New password of {name}", piped=piped, confirm=True)
    services.access.set_password(name, password)
    click.echo(f"the password of {name} is set")
