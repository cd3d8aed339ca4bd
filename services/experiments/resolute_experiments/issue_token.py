"""Issues the tokens that a cluster of services that run apart begins with.

Run ``python -m resolute_experiments.issue_token`` where the experiments service runs, with its settings. It
signs with the key of that service, which it makes if there is none yet. A token for a service lets it call
the others; the token for the operator lets the first person in, who then makes users, passwords and tokens.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.files.atomic_files import write_atomically
from resolute.errors import ResoluteError
from resolute_serving.auth.policy.service_accounts import ACCOUNTS
from resolute_serving.auth.tokens import TokenSigner, load_or_create_key
from resolute_serving.context import Role, ServiceAccount, User
from resolute_serving.server.settings import Settings

OPERATOR = "operator"
"""Whom a token may be for, beside a service."""
_OPERATOR = User("admin", Role.ADMIN, user_id=1)
"""The first user of every cluster."""
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
    """Issues a token.

    Args:
        settings: Those of the experiments service.
        account: Name of a service, or ``OPERATOR``.
        days: For how long; None for the default of the account.
    """
    key = load_or_create_key(settings.signing_key_file or settings.data_directory / "signing-key.pem")
    signer = TokenSigner(key, cluster_id=settings.cluster_id, clock=SYSTEM_CLOCK)
    if account == OPERATOR:
        return signer.user(_OPERATOR, ttl=_HOUR if days is None else days * _DAY)
    return signer.service(ServiceAccount(account), ttl=(365 if days is None else days) * _DAY)


if __name__ == "__main__":
    main()
