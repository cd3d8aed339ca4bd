"""Tokens for the SDK in scripts of runs: they act for the owner in one workspace, and end with the run."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from resolute_experiments.accounts.store import tokens, workspace_roles
from resolute_experiments.accounts.store.tokens import IssuedToken, TokenKind
from resolute_experiments.accounts.store.users import Account
from resolute_experiments.store.runs import Run
from resolute_serving.context import Role, User


@dataclass(frozen=True)
class RunToken:
    """The user for whom the SDK in a run acts, and the stored data of its token."""

    user: User
    """The owner, in the workspace of the experiment alone."""
    record: IssuedToken | None
    """The row of the token; None for a run that has none yet."""

    def is_due(self, *, now: float, ttl: float) -> bool:
        """Whether the token has to be made, or has to expire later."""
        return self.record is None or self.record.expires_at - now < ttl / 2


def find(connection: Connection, run: Run, owner: Account, *, workspace_id: int) -> RunToken:
    """Reads the token of a run, with the owner's role in the workspace and at most that of an editor."""
    own = workspace_roles.of_user(connection, owner.number).get(workspace_id, Role.MEMBER)
    allowed = (Role.EDITOR, Role.VIEWER, Role.MEMBER)
    role = next(role for role in allowed if owner.role.includes(role) or own.includes(role))
    user = User(owner.name, role, user_id=owner.number, workspace_id=workspace_id)
    return RunToken(user, _current(connection, run, owner))


def renew(connection: Connection, run: Run, owner: Account, *, now: float, ttl: float) -> IssuedToken:
    """Stores that a run has a token until ``ttl`` seconds from now."""
    # It is read again: the supervisor of another container may have renewed the lease meanwhile.
    known = _current(connection, run, owner)
    if known is not None:
        tokens.extend(connection, known.id, expires_at=now + ttl)
        return replace(known, expires_at=now + ttl)
    token = IssuedToken(
        id=str(uuid.uuid4()),
        username=owner.name,
        user_number=owner.number,
        description=f"SDK in run {run.run} of a trial",
        created_at=now,
        expires_at=now + ttl,
        revoked=False,
        kind=TokenKind.RUN,
        allocation_id=run.allocation_id,
    )
    tokens.insert(connection, token)
    return token


def _current(connection: Connection, run: Run, owner: Account) -> IssuedToken | None:
    return tokens.current(
        connection, TokenKind.RUN, user_number=owner.number, allocation_id=run.allocation_id
    )
