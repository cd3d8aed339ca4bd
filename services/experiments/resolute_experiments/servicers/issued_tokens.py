"""Issues, lists and revokes tokens of users."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.contracts.times import seconds_of
from resolute.errors import InvalidArgumentError, PermissionDeniedError
from resolute_experiments.context import ServiceContext
from resolute_experiments.servicers.checks.fields import any_of, check_length, equals, required_id
from resolute_experiments.store import audit, tokens, users
from resolute_experiments.store import schema as tables
from resolute_experiments.store.schema import IDEMPOTENCY_KEYS
from resolute_experiments.store.tokens import IssuedToken
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.context import Role, User, current_principal
from resolute_serving.pagination import Page
from resolute_serving.validation import invalid

_DEFAULT_TTL = 30 * 86_400.0
_LONGEST_TTL = 365 * 86_400.0
_DESCRIPTION_LENGTH = 1000


@dataclass(frozen=True)
class SignedToken:
    """A token that was just signed."""

    text: str
    """The token itself."""
    record: IssuedToken
    """What is stored of it."""


class TokenIssuer:
    """Issues tokens of users.

    Args:
        core: What all handlers of this service share.
        signer: Signs them.
    """

    def __init__(self, core: ServiceContext, signer: TokenSigner) -> None:
        self._core = core
        self._signer = signer

    async def create(self, request: pb2.CreateTokenRequest) -> SignedToken:
        """Issues a token that somebody asked for, once for each request id.

        Raises:
            InvalidArgumentError: The request is wrong.
            PermissionDeniedError: It is for another user, and the caller is no admin.
        """
        ttl = seconds_of(request.ttl) if request.HasField("ttl") else _DEFAULT_TTL
        if not 1 <= ttl <= _LONGEST_TTL:
            raise invalid("ttl", f"ttl is {ttl:g} s; it must be from 1 s to {_LONGEST_TTL:.0f} s")
        check_length(request.description, field="description", most=_DESCRIPTION_LENGTH)
        number = await self._user_of(request)
        return await self.issue(
            number, ttl=ttl, description=request.description, action="create_token", request=request
        )

    async def issue(
        self,
        number: int,
        *,
        ttl: float,
        description: str,
        action: str,
        request: pb2.CreateTokenRequest | None = None,
    ) -> SignedToken:
        """Issues a token.

        Args:
            number: Id of the user.
            ttl: Seconds that it is valid.
            description: What it is for.
            action: The action in the audit trail.
            request: The request whose id makes the call repeatable; None for none.
        """
        now = self._core.clock.time()

        def work(connection: Connection) -> SignedToken:
            user = users.get(connection, number=number).user

            def create() -> str:
                record = IssuedToken(
                    id=str(uuid.uuid4()),
                    username=user.name,
                    user_number=number,
                    description=description,
                    created_at=now,
                    expires_at=now + ttl,
                    revoked=False,
                )
                tokens.insert(connection, record)
                audit.record(connection, action, f"user {user.name}", now=now, ttl=ttl)
                return record.id

            record = tokens.get(connection, _once(connection, request, create, now=now))
            # A repeated call gets the same token signed again: only what the signature needs is stored.
            remaining = record.expires_at - now
            return SignedToken(self._signer.user(user, ttl=remaining, token_id=record.id), record)

        return await self._core.database.write(work)

    async def page(self, request: pb2.ListTokensRequest) -> Page:
        """Reads a page of the tokens that the caller may see.

        Raises:
            PermissionDeniedError: The caller asks for another user's, and is no admin.
        """
        caller, now = current_principal.get(), self._core.clock.time()
        query = tokens.all_tokens().where(
            tables.tokens.c.expires_at > now,
            *any_of(request, {"user_ids": tables.users.c.number}),
            *equals(request, {"revoked": tables.tokens.c.revoked}),
        )
        if isinstance(caller, User) and caller.role is not Role.ADMIN:
            own = await self._core.database.read(lambda c: users.ids_of(c, [caller.name]))
            if set(request.user_ids) - set(own.values()):
                raise PermissionDeniedError(
                    f"user {caller.name} may not list the tokens of other users; ask an admin, or leave "
                    "user_ids out"
                )
            query = query.where(tables.tokens.c.username == caller.name)
        return await self._core.database.read(lambda c: tokens.ORDERING.page(c, request, query))

    async def revoke(self, token_id: str) -> IssuedToken:
        """Ends a token before its time.

        Raises:
            PermissionDeniedError: It is another user's, and the caller is no admin.
        """
        known = await self._core.database.read(lambda c: tokens.get(c, token_id))
        require_own_or_admin(known.username, "revoke tokens of")
        now = self._core.clock.time()

        def work(connection: Connection) -> IssuedToken:
            tokens.revoke(connection, known.id)
            audit.record(connection, "revoke_token", f"user {known.username}", now=now, token=known.id)
            return tokens.get(connection, known.id)

        return await self._core.database.write(work)

    async def _user_of(self, request: pb2.CreateTokenRequest) -> int:
        if request.HasField("user_id"):
            number = required_id(request.user_id, field="user_id")
            name = (await self._core.database.read(lambda c: users.get(c, number=number))).name
            require_own_or_admin(name, "issue tokens for")
            return number
        caller = current_principal.get()
        if not isinstance(caller, User):
            raise InvalidArgumentError("user_id is missing; only users can leave it out")
        return (await self._core.database.read(lambda c: users.get(c, name=caller.name))).number


def require_own_or_admin(username: str, what: str) -> None:
    """Lets users do what concerns themselves, and admins everything.

    Raises:
        PermissionDeniedError: It concerns another user.
    """
    caller = current_principal.get()
    if isinstance(caller, User) and caller.role is not Role.ADMIN and caller.name != username:
        raise PermissionDeniedError(f"user {caller.name} may not {what} user {username}; ask an admin")


def _once(
    connection: Connection,
    request: pb2.CreateTokenRequest | None,
    create: Callable[[], str],
    *,
    now: float,
) -> str:
    return create() if request is None else IDEMPOTENCY_KEYS.once(connection, request, create, now=now)
