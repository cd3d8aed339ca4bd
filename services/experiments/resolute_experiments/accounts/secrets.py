"""Secrets for scripts: their holders, and the secrets that a run gets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy.engine import Connection

from resolute.contracts.documents.refusals import refused_config
from resolute.contracts.run.secret_references import NAME, secret_references
from resolute.errors import FailedPreconditionError, PermissionDeniedError, Violation
from resolute_experiments.accounts.store import secrets, users
from resolute_experiments.accounts.store.secrets import Holder, Secret
from resolute_experiments.store.experiments import Experiment
from resolute_serving.context import actor
from resolute_serving.sealing import Sealer
from resolute_serving.validation import invalid

LONGEST_BYTES = 32 * 1024
"""Most bytes of a value: the kernel has 128 KiB for one variable."""
SHORTEST = 8
"""Fewest characters of a value: a shorter one cannot be masked without masking words of the log too."""
MOST = 100
"""Secrets of one user, or of one workspace."""


class Secrets:
    """Encrypts secrets for the database, and decrypts them for runs.

    Args:
        sealer: Encrypts and decrypts with the service's key.
    """

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def put(self, connection: Connection, holder: Holder, name: str, value: str, *, now: float) -> Secret:
        """Writes a secret in place of the one of its name.

        Raises:
            InvalidArgumentError: The name or the value cannot be one, or there are too many.
        """
        _check(name, value)
        sealed = self._sealer.seal(value, purpose=_purpose(holder, name))
        secrets.put(connection, holder, name, sealed, now=now)
        known = secrets.of_holder(connection, holder)
        if len(known) > MOST:
            raise invalid("name", f"there are {MOST} secrets already; delete one that is not needed")
        return known[name]

    def of_run(self, connection: Connection, experiment: Experiment) -> dict[str, str]:
        """The values of the secrets that the config of an experiment names, by name.

        Raises:
            FailedPreconditionError: One is not there, is one of a deactivated user, or was encrypted with
                another key.
        """
        found = _found(connection, experiment, _names(experiment.config))
        if absent := sorted(_names(experiment.config) - found.keys()):
            raise FailedPreconditionError(
                f"secret {absent[0]!r}, which environment.secrets names, does not exist; "
                f"`resolute secret set {absent[0]}` sets it",
                resource=f"secret {absent[0]}",
            )
        return {
            name: self._sealer.unseal(secret.sealed, purpose=_purpose(holder, name))
            for name, (holder, secret) in found.items()
        }

    def renew(self, connection: Connection) -> int:
        """Encrypts with the first key all that older keys have encrypted; returns how many secrets."""
        count = 0
        for holder, name, sealed in secrets.every(connection):
            renewed = self._sealer.renewed(sealed, purpose=_purpose(holder, name))
            if renewed is not None:
                secrets.reseal(connection, holder, name, renewed)
                count += 1
        return count


def require_named(connection: Connection, experiment: Experiment, config: Mapping[str, Any]) -> None:
    """Checks that every secret exists that a config names.

    Args:
        connection: The transaction.
        experiment: Whose config it is, or will be.
        config: The config.

    Raises:
        InvalidConfigError: One does not.
        FailedPreconditionError: One is one of a deactivated user.
    """
    names = _names(config)
    if absent := sorted(names - _found(connection, experiment, names).keys()):
        reason = (
            f"{absent[0]!r} is not a secret of {experiment.owner} or of workspace {experiment.workspace!r}; "
            f"`resolute secret set {absent[0]}` sets it"
        )
        raise refused_config(Violation("environment.secrets", reason))


def require_owner(experiment: Experiment, config: Mapping[str, Any]) -> None:
    """Keeps others from changing what is run with the secrets of the owner of an experiment.

    Args:
        experiment: As it is.
        config: Its config from now on, which is another one.

    Raises:
        PermissionDeniedError: The config names secrets, and the caller is not the owner.
    """
    if _names(config) and actor() != experiment.owner:
        raise PermissionDeniedError(
            f"{experiment.label} is given secrets (environment.secrets): {experiment.owner} alone may change "
            f"its config; `resolute experiment fork {experiment.number}` makes one of your own",
            resource=experiment.label,
        )


def _names(config: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(reference.name for reference in secret_references(config))


def _found(
    connection: Connection, experiment: Experiment, names: Collection[str]
) -> dict[str, tuple[Holder, Secret]]:
    """The secrets of some names: the owner's own, and of the others those of the workspace.

    Raises:
        FailedPreconditionError: The owner has one and is deactivated: another value would take its place.
    """
    if not names:
        return {}
    found: dict[str, tuple[Holder, Secret]] = {}
    if experiment.workspace_id:
        found |= _of(connection, Holder(workspace_number=experiment.workspace_id), names)
    owner = users.owner_of(connection, experiment.id)
    if owner is not None:
        own = _of(connection, Holder(user_number=owner.number), names)
        if own and not owner.active:
            raise FailedPreconditionError(
                f"secret {min(own)!r} is one of {owner.name}, who is deactivated; activate the user, or fork "
                "the experiment with a secret of your own",
                resource=f"secret {min(own)}",
            )
        found |= own
    return found


def _of(connection: Connection, holder: Holder, names: Collection[str]) -> dict[str, tuple[Holder, Secret]]:
    return {name: (holder, secret) for name, secret in secrets.of_holder(connection, holder, names).items()}


def _check(name: str, value: str) -> None:
    if not NAME.fullmatch(name):
        raise invalid(
            "name",
            f"{name[:80]!r} is not a name of a secret: 1 to 64 letters, digits and . _ -, the first no sign",
        )
    size = len(value.encode())
    if len(value) < SHORTEST or size > LONGEST_BYTES or "\0" in value:
        raise invalid(
            "value",
            f"the value has {size} bytes; it must be text without NUL, of {SHORTEST} characters, so that it "
            f"can be masked in logs, to {LONGEST_BYTES} bytes",
        )


def _purpose(holder: Holder, name: str) -> str:
    return f"secret {name} of user {holder.user_number} workspace {holder.workspace_number}"
