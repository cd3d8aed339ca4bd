"""``resolute user login|logout|whoami``."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import click

from resolute.cli.accounts.passwords import ask, password_option
from resolute.cli.accounts.provider_login import log_in_with_provider
from resolute.cli.options.settings import Settings
from resolute.client.connection import credentials, trust
from resolute.client.connection.home import Home
from resolute.contracts.calls.tls import ClientTls, fingerprint_of
from resolute.errors import FailedPreconditionError


@click.command()
@click.argument("name", default="")
@click.option("--sso", is_flag=True, help="Log in with the OpenID provider of the cluster.")
@password_option
@click.option(
    "--fingerprint", default="", help="SHA-256 of the cluster's certificate, as `resolute up` printed it."
)
@click.pass_obj
def login(settings: Settings, name: str, sso: bool, piped: bool, fingerprint: str) -> None:
    """Log in as the user NAME, or the one of -u; later commands act as that user."""
    from resolute.client.connection.session import Session
    from resolute.client.remote.accounts.access import Access

    if sso and (name or piped):
        raise click.UsageError("--sso takes no NAME and no password: the provider knows both")
    settings.signs_in = True
    asks = not piped and sys.stdin.isatty()
    confirmed = _confirm_certificate(settings, fingerprint, asks=asks)
    if sso:
        log_in_with_provider(settings)
        return
    name = name or settings.user
    if not name and not asks:
        raise click.UsageError("Missing argument 'NAME'.")
    name = name or click.prompt("User", err=True)
    endpoint = settings.services().session.endpoint
    device = credentials.device_file(endpoint.credential_file, name)
    password = ask(f"Password of {name}", piped=piped)
    # Without the token that is at hand: one that has ended must not be in the way of the next.
    with Session(replace(endpoint, token=lambda: "")) as session:
        token = Access(session).login(name, password, device_token=credentials.read(device))
    if confirmed is not None:  # for commands that name the port of gRPC
        trust.save(Home.from_environment(os.environ), endpoint.address, confirmed)
    credentials.save(endpoint.credential_file, token.text)
    credentials.save(device, token.device_token)
    click.echo(f"logged in at {endpoint.address} as {name}")


def _confirm_certificate(settings: Settings, fingerprint: str, *, asks: bool) -> ClientTls | None:
    """Asks a person whether an unknown certificate is the cluster's, before a password is sent.

    Args:
        settings: Name the cluster.
        fingerprint: What the person knows of the certificate; empty to ask.
        asks: Whether a person answers at standard input.

    Returns:
        The certificate, if it was not trusted before.
    """
    from resolute.client.connection.endpoint import find_tls, named_master, parse_address

    master = settings.master or named_master(os.environ)[1]
    home = Home.from_environment(os.environ)
    tls = find_tls(master, home, os.environ) if master.lower().startswith("https://") else None
    if tls is None or trust.is_trusted(address := parse_address(master), tls):
        return None
    if tls.authority is not None:
        raise FailedPreconditionError(
            f"{address} shows another certificate than the trusted one; if the cluster has a new one, remove "
            f"{home.trust_file(address)} and log in again"
        )
    shown = trust.presented(address)
    click.echo(
        f"No known authority signed the certificate of {address}. Its SHA-256 fingerprint is", err=True
    )
    actual = fingerprint_of(shown.authority or b"")
    click.echo(f"  {actual}", err=True)
    if not fingerprint and not asks:
        raise FailedPreconditionError(
            "without a terminal one cannot ask whether that is the cluster's: compare it with what "
            f"`resolute up` printed, and add --fingerprint {actual}"
        )
    if not fingerprint:
        click.confirm("Is it the one that `resolute up` printed?", abort=True, err=True)
    elif fingerprint.strip().upper() != actual:
        raise FailedPreconditionError(f"that is not {fingerprint}: somebody else may answer at {address}")
    trust.save(home, address, shown)
    return shown


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
        click.echo(f"no user is logged in at {endpoint.address}")


@click.command()
@click.pass_obj
def whoami(settings: Settings) -> None:
    """Print the current user."""
    click.echo(settings.services().cluster.current_user())
