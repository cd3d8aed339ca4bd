"""Issues the first tokens of a cluster whose services run separately.

Run ``python -m resolute_experiments.issue_token`` on the machine of the experiments service, with its
settings. It signs with the key of that service, and creates the key if there is none. The token of a service
allows it to call the others. The operator's token is for the first sign-in, to create users, passwords and
tokens.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.engine import Connection

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.files.atomic_files import write_atomically
from resolute.errors import ResoluteError
from resolute_experiments.accounts import issuing
from resolute_experiments.accounts.issuing import TokenParameters, insert_operator_token, insert_service_token
from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.auth.policy.service_accounts import ACCOUNTS
from resolute_serving.auth.signing_keys import KeyFile
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.context import ServiceAccount, current_principal
from resolute_serving.database import migrations
from resolute_serving.database.engine import create_engine
from resolute_serving.server.settings import Settings

OPERATOR = "operator"
"""Whom a token may be for, beside a service."""
_DESCRIPTION = "issued by command"
_HOUR = 3600.0
_DAY = 24 * _HOUR


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes one token to a file that only its owner can read, or to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m resolute_experiments.issue_token", description=__doc__)
    parser.add_argument("account", choices=[*ACCOUNTS, OPERATOR], help="a service, or the first operator")
    parser.add_argument(
        "--days", type=float, help="days for which it is valid [365; an hour for the operator]"
    )
    parser.add_argument("--output", type=Path, help="file to write [standard output]")
    options = parser.parse_args(arguments)
    try:
        settings = Settings.from_environment(os.environ, service="experiments")
        token = issue(settings, options.account, days=options.days)
    except ResoluteError as error:
        sys.exit(f"{parser.prog}: {error}")
    if options.output is None:
        sys.stdout.write(f"{token}\n")
    else:
        write_atomically(options.output, f"{token}\n", mode=0o600, sync=True)


def issue(settings: Settings, account: str, *, days: float | None) -> str:
    """Issues a token, and writes it down as the service does: it is listed, renewed and revoked like others.

    Args:
        settings: Those of the experiments service.
        account: Name of a service, or ``OPERATOR``.
        days: For how long; None for the default of the account.

    Raises:
        FailedPreconditionError: The database has the schema of another version.
    """
    keys = KeyFile(settings.signing_key_file or settings.data_directory / "signing-key.pem")
    signer = TokenSigner(keys, cluster_id=settings.cluster_id, clock=SYSTEM_CLOCK)
    now = SYSTEM_CLOCK.time()
    with _acting_as(ServiceAccount("experiments")), _database(settings) as connection:
        if account == OPERATOR:
            wanted = TokenParameters(ttl=_seconds(days, _HOUR), description=_DESCRIPTION)
            token_id = insert_operator_token(connection, wanted, now=now)
            return signer.user(issuing.OPERATOR, ttl=wanted.ttl, token_id=token_id)
        wanted = TokenParameters(ttl=_seconds(days, 365 * _DAY), description=_DESCRIPTION)
        token_id = insert_service_token(connection, account, wanted, now=now)
        return signer.service(ServiceAccount(account), ttl=wanted.ttl, token_id=token_id)


@contextmanager
def _acting_as(account: ServiceAccount) -> Iterator[None]:
    """Names the account in what is written down, until the block ends."""
    before = current_principal.set(account)
    try:
        yield
    finally:
        current_principal.reset(before)


@contextmanager
def _database(settings: Settings) -> Iterator[Connection]:
    """Opens a transaction in the service's database, which is empty before the service's first start."""
    settings.data_directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    engine = create_engine(settings.database_url, name=BLUEPRINT.name, writes=True)
    try:
        if not migrations.is_empty(engine):
            migrations.check(engine, package=BLUEPRINT.package)
        else:
            migrations.upgrade(engine, package=BLUEPRINT.package, schema=BLUEPRINT.name)
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def _seconds(days: float | None, default: float) -> float:
    return default if days is None else days * _DAY


if __name__ == "__main__":
    main()
