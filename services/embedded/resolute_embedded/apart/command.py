"""``resolute-services``: the entry of the services' image, one command for each process of a cluster.

    resolute-services experiments --upgrade     brings the schema up to date, then serves
    resolute-services gateway
    resolute-services health experiments
    resolute-services prepare --directory /etc/resolute --name gateway
    resolute-services tokens --directory /var/lib/resolute

The settings are described in docs/services.md: variables, and the files of variables that RESOLUTE_ENV_FILES
names.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from pathlib import Path

import click
from sqlalchemy.exc import OperationalError

from resolute.contracts.calls.backoff import Backoff, retry
from resolute.errors import ResoluteError
from resolute_embedded.apart import environment
from resolute_serving.server.settings import SERVICE_NAMES, Settings

_DATABASE_SECONDS = 120.0
"""How long a start waits for a database that starts at the same time."""
_LONGEST_PAUSE_SECONDS = 1.0


@click.group()
def main() -> None:
    """Runs a service of a cluster, or does what a cluster of services needs once."""
    try:
        environment.load(os.environ)
    except ResoluteError as error:
        raise click.ClickException(str(error)) from error


def _serve(name: str) -> None:
    sys.argv = [f"resolute_{name}"]
    runpy.run_module(f"resolute_{name}", run_name="__main__", alter_sys=True)


def _add(name: str) -> None:
    @main.command(name, help=f"Serves {name} until SIGTERM.")
    @click.option("--upgrade", is_flag=True, help="First bring its schema in the database up to date.")
    def serve(upgrade: bool) -> None:
        if upgrade:
            _upgrade(name)
        _serve(name)


for _name in SERVICE_NAMES:
    _add(_name)


@main.command()
def gateway() -> None:
    """Serves the gateway until SIGTERM: one address for gRPC, HTTP and the page."""
    _serve("gateway")


@main.command()
@click.argument("service", type=click.Choice([*SERVICE_NAMES, "gateway"]))
def health(service: str) -> None:
    """Exits with 0 if SERVICE, on this machine and by these settings, can work."""
    from resolute_embedded.apart.health import check

    try:
        check(os.environ, service=service)
    except ResoluteError as error:
        raise click.ClickException(str(error)) from error


@main.command()
@click.option("--directory", type=click.Path(path_type=Path), required=True, help="Where to write them.")
@click.option(
    "--name", "names", multiple=True, help="Name or address that the certificate is for; repeat it."
)
@click.option(
    "--gateway",
    "gateway_names",
    multiple=True,
    help="Name or address of the gateway, which gets a folder and a certificate of its own; repeat it.",
)
def prepare(directory: Path, names: tuple[str, ...], gateway_names: tuple[str, ...]) -> None:
    """Writes what a new cluster begins with: its id, secrets of its stores, an authority and a certificate.

    What is there already stays, so it may be repeated.
    """
    from resolute_embedded.apart.preparation import prepare as write

    write(directory, names=names, gateway_names=gateway_names)


@main.command()
@click.option(
    "--directory", type=click.Path(path_type=Path), required=True, help="Has a folder for each service."
)
def tokens(directory: Path) -> None:
    """Writes the token of each service that has none, with the settings of the experiments service."""
    from resolute_embedded.apart.preparation import write_secret
    from resolute_experiments.issue_token import issue
    from resolute_serving.auth.policy.service_accounts import ACCOUNTS

    _upgrade("experiments")
    settings = Settings.from_environment(os.environ, service="experiments")
    for account in ACCOUNTS:
        if account == "experiments":  # it has the key that signs them
            continue
        path = directory / account / "token"
        if not path.exists():
            write_secret(path, issue(settings, account, days=None) + "\n")
            click.echo(f"wrote {path}")


@main.command("operator-token")
@click.option("--days", type=float, help="Days for which it is valid [an hour].")
def operator_token(days: float | None) -> None:
    """Prints a token of the user admin, with the settings of the experiments service."""
    from resolute_experiments.issue_token import OPERATOR, issue

    try:
        settings = Settings.from_environment(os.environ, service="experiments")
        click.echo(issue(settings, OPERATOR, days=days))
    except ResoluteError as error:
        raise click.ClickException(str(error)) from error


@main.command("rotate-key")
@click.option("--drop-old", is_flag=True, help="Instead end all that the keys before the current one signed.")
@click.option("--now", is_flag=True, help="Drop them although running trials may still need them.")
def rotate_key(drop_old: bool, now: bool) -> None:
    """Signs tokens with a new key from now on, with the settings of the experiments service."""
    from resolute_embedded.home.key_rotation import rotate_or_drop

    settings = Settings.from_environment(os.environ, service="experiments")
    path = settings.signing_key_file or settings.data_directory / "signing-key.pem"
    try:
        click.echo(rotate_or_drop(path, drop=drop_old, at_once=now))
    except ResoluteError as error:
        raise click.ClickException(str(error)) from error


def _upgrade(name: str) -> None:
    """Brings a schema up to date, as soon as the database answers."""
    from resolute_serving.server.bootstrap import upgrade

    blueprint = importlib.import_module(f"resolute_{name}.blueprint").BLUEPRINT
    url = Settings.from_environment(os.environ, service=name).database_url
    try:
        retry(
            lambda: upgrade(blueprint, url),
            backoff=Backoff(longest=_LONGEST_PAUSE_SECONDS),
            outage_timeout=_DATABASE_SECONDS,
            retried=(OperationalError,),
        )
    except OperationalError as error:
        raise click.ClickException(f"the database of {name} does not answer: {error.orig}") from error


if __name__ == "__main__":
    main()
