"""``resolute user login|logout|whoami``."""

from __future__ import annotations

from dataclasses import replace

import click

from resolute.cli.accounts.passwords import ask, password_option
from resolute.cli.options.settings import Settings
from resolute.client.connection import credentials


@click.command()
@click.argument("name", default="")
@password_option
@click.pass_obj
def login(settings: Settings, name: str, piped: bool) -> None:
    """Log in as the user NAME, or the one of -u; later commands act as that user."""
    from resolute.client.connection.session import Session
    from resolute.client.remote.access import Access

    name = name or settings.user or click.prompt("User", err=True)
    endpoint = settings.services().session.endpoint
    device = credentials.device_file(endpoint.credential_file, name)
    password = ask(f"Password of {name}", piped=piped)
    # Without the token that is at hand: one that has ended must not be in the way of the next.
    with Session(replace(endpoint, token=lambda: "")) as session:
        token = Access(session).login(name, password, device_token=credentials.read(device))
    credentials.save(endpoint.credential_file, token.text)
    credentials.save(device, token.device_token)
    click.echo(f"logged in at {endpoint.address} as {name}")


@click.command()
@click.option("-a", "--all", "everywhere", is_flag=True, help="Delete the tokens of logins at all clusters.")
@click.pass_obj
def logout(settings: Settings, everywhere: bool) -> None:
    """Log out: delete the token of the login."""
    endpoint = settings.services().session.endpoint
    if everywhere:
        ended = credentials.delete_all(endpoint.credential_file.parent)
        click.echo(f"logged out at {ended} clusters")
        return
    if credentials.delete(endpoint.credential_file):
        click.echo(f"logged out at {endpoint.address}")
    else:
        click.echo(f"nobody is logged in at {endpoint.address}")


@click.command()
@click.pass_obj
def whoami(settings: Settings) -> None:
    """Print the current user."""
    click.echo(settings.services().cluster.current_user())
