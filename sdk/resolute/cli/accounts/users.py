"""``resolute user list|create|edit|rename|set-role|activate|deactivate|change-password``."""

from __future__ import annotations

import click

from resolute.cli.accounts.passwords import ask, password_option
from resolute.cli.display.output import Column, Format, format_option, json_option, print_items, print_json
from resolute.cli.options import completions
from resolute.cli.options.settings import Settings
from resolute.client.schema.accounts import UserRecord, UserRole

_COLUMNS: tuple[Column[UserRecord], ...] = (
    Column("Name", lambda user: user.name),
    Column("Role", lambda user: user.role),
    Column("Active", lambda user: user.active),
    Column("Password", lambda user: user.has_password),
    Column("Created", lambda user: user.create_time),
)
_ROLE = click.Choice([role.value for role in UserRole if role is not UserRole.UNSPECIFIED])


@click.command(name="list")
@click.option("-a", "--all", "everybody", is_flag=True, help="Include users that are deactivated.")
@format_option
@click.pass_obj
def list_(settings: Settings, everybody: bool, output: Format) -> None:
    """List the active users."""
    users = settings.services().access.list_users()
    print_items((user for user in users if everybody or user.active), _COLUMNS, output=output)


@click.command()
@click.argument("name")
@click.option("--role", type=_ROLE, help="What the user may do in the cluster [editor].")
@click.option("--admin", is_flag=True, help="The same as --role admin.")
@json_option
@click.pass_obj
def create(settings: Settings, name: str, role: str | None, admin: bool, as_json: bool) -> None:
    """Create the user NAME, who can use tokens, and log in once a password is set."""
    if admin and role not in {None, UserRole.ADMIN.value}:
        raise click.UsageError("--admin and --role exclude each other.")
    given = UserRole.ADMIN if admin else UserRole(role or UserRole.EDITOR.value)
    user = settings.services().access.create_user(name, given)
    if as_json:
        print_json(user)
    else:
        click.echo(f"user {user.name} is created as {user.role.value}")


@click.command()
@click.argument("name", shell_complete=completions.users)
@click.option("--username", help="New name.")
@click.option(
    "--admin", type=bool, metavar="BOOL", help="Whether the user is an admin; without it, an editor."
)
@click.option("--active", type=bool, metavar="BOOL", help="Whether anybody can act as the user.")
@click.pass_obj
def edit(
    settings: Settings, name: str, username: str | None, admin: bool | None, active: bool | None
) -> None:
    """Change the user NAME. When the role changes, the tokens of the user are revoked."""
    if username is None and admin is None and active is None:
        raise click.UsageError("Nothing to change; give --username, --admin or --active.")
    access = settings.services().access
    account = next(access.list_users(names=[name]), None)
    role = None if account is None or admin is None else _role(account, admin=admin)
    user = access.update_user(name, name=username, role=role, active=active)
    state = "active" if user.active else "deactivated"
    click.echo(f"user {user.name} is {user.role.value} and {state}")


def _role(account: UserRecord, *, admin: bool) -> UserRole | None:
    """The role to give, None where it stays: who is no admin keeps a lower role than editor."""
    if admin is (account.role is UserRole.ADMIN):
        return None
    return UserRole.ADMIN if admin else UserRole.EDITOR


@click.command()
@click.argument("name", shell_complete=completions.users)
@click.argument("new_name")
@click.pass_obj
def rename(settings: Settings, name: str, new_name: str) -> None:
    """Give the user NAME the name NEW_NAME. Experiments and tokens of the user stay the user's."""
    user = settings.services().access.update_user(name, name=new_name)
    click.echo(f"user {name} is called {user.name}")


@click.command()
@click.argument("name", shell_complete=completions.users)
@click.argument("role", type=_ROLE)
@click.pass_obj
def set_role(settings: Settings, name: str, role: str) -> None:
    """Give the user NAME the role ROLE; the tokens of the user are revoked."""
    user = settings.services().access.update_user(name, role=UserRole(role))
    click.echo(f"user {user.name} is now {user.role.value}")


@click.command()
@click.argument("name", shell_complete=completions.users)
@click.pass_obj
def activate(settings: Settings, name: str) -> None:
    """Reactivate the user NAME."""
    settings.services().access.update_user(name, active=True)
    click.echo(f"user {name} is active")


@click.command()
@click.argument("name", shell_complete=completions.users)
@click.pass_obj
def deactivate(settings: Settings, name: str) -> None:
    """Deactivate the user NAME: the tokens of the user are revoked. Experiments continue."""
    settings.services().access.update_user(name, active=False)
    click.echo(f"user {name} is deactivated")


@click.command()
@click.argument("name", default="", shell_complete=completions.users)
@password_option
@click.pass_obj
def change_password(settings: Settings, name: str, piped: bool) -> None:
    """Change the password of the user NAME, or your own; all other tokens of the user are revoked."""
    services = settings.services()
    name = name or services.cluster.current_user()
    password = ask(f"New password of {name}", piped=piped, confirm=True)
    services.access.set_password(name, password)
    click.echo(f"the password of {name} is set")
