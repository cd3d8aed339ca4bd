"""Logging in with the OpenID provider of a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from resolute.cli.options.settings import Settings
from resolute.client.connection import credentials
from resolute.errors import FailedPreconditionError

if TYPE_CHECKING:
    from resolute.client.connection.device_flow import Confirmation


def log_in_with_provider(settings: Settings) -> None:
    """Lets the provider sign a person in, and keeps the token that the cluster gives for it.

    Raises:
        FailedPreconditionError: The cluster has no provider.
    """
    from resolute.client.connection.device_flow import sign_in
    from resolute.client.connection.session import Session
    from resolute.client.remote.accounts.access import Access

    endpoint = settings.services().session.endpoint
    # Without the token that is at hand: one that has ended must not be in the way of the next.
    with Session(replace(endpoint, token=lambda: "")) as session:
        access = Access(session)
        provider = access.openid_provider()
        if provider is None:
            raise FailedPreconditionError(
                f"{endpoint.address} has no OpenID provider; log in with `resolute login NAME`"
            )
        token = access.login_with_id_token(sign_in(provider, _show))
    credentials.save(endpoint.credential_file, token.text)
    click.echo(f"logged in at {endpoint.address} as {token.username}")


def _show(confirmation: Confirmation) -> None:
    if confirmation.complete_url:
        click.echo(f"Open {confirmation.complete_url} and compare the code: {confirmation.code}", err=True)
    else:
        click.echo(f"Open {confirmation.url} and enter the code {confirmation.code}", err=True)
