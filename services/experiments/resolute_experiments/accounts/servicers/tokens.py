"""Handlers of the calls about tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.contracts.times import seconds_of
from resolute.errors import InvalidArgumentError, PermissionDeniedError
from resolute_experiments.accounts.issuing import TokenIssuer, TokenParameters
from resolute_experiments.accounts.servicers.user_messages import TOKEN_SCOPES, token_kinds, token_message
from resolute_experiments.accounts.store import tokens, users
from resolute_experiments.accounts.store.tokens import IssuedToken
from resolute_experiments.context import ServiceContext
from resolute_experiments.store import audit
from resolute_experiments.store import schema as tables
from resolute_serving.auth.policy.service_accounts import ACCOUNTS
from resolute_serving.auth.tokens import RevokedTokens
from resolute_serving.context import Role, User, current_principal
from resolute_serving.filters import any_of, equals
from resolute_serving.updates import update_paths
from resolute_serving.validation import check_length, invalid, required_id

_DEFAULT_TTL = 30 * 86_400.0
_SERVICE_TTL = 86_400.0
_LONGEST_TTL = 365 * 86_400.0
_DESCRIPTION_LENGTH = 1000
_UPDATABLE = frozenset({"description"})


class TokenHandlers:
    """The part of AccessService about tokens.

    Args:
        core: The context that all handlers share.
        issuer: Issues tokens.
        revoked: The tokens that this process refuses.
    """

    def __init__(self, core: ServiceContext, issuer: TokenIssuer, *, revoked: RevokedTokens) -> None:
        self._core = core
        self._issuer = issuer
        self._revoked = revoked

    async def CreateToken(self, request: pb2.CreateTokenRequest, context: Any) -> pb2.CreateTokenResponse:
        """Issues a token for a user."""
        wanted = replace(_wanted(request, default_ttl=_DEFAULT_TTL), scope=TOKEN_SCOPES[request.scope])
        issued = await self._issuer.create(await self._user_of(request), wanted, request=request)
        return pb2.CreateTokenResponse(bearer_token=issued.text, token=token_message(issued.record))

    async def CreateServiceToken(
        self, request: pb2.CreateServiceTokenRequest, context: Any
    ) -> pb2.CreateServiceTokenResponse:
        """Issues a token for a service."""
        service = request.service_name
        if service not in ACCOUNTS:
            raise invalid(
                "service_name", f"service_name is {service[:100]!r}; it is one of {', '.join(ACCOUNTS)}"
            )
        wanted = _wanted(request, default_ttl=_SERVICE_TTL)
        issued = await self._issuer.create_service(service, wanted, request=request)
        return pb2.CreateServiceTokenResponse(bearer_token=issued.text, token=token_message(issued.record))

    async def RenewServiceToken(
        self, request: pb2.RenewServiceTokenRequest, context: Any
    ) -> pb2.RenewServiceTokenResponse:
        """Renews the token of the calling service."""
        issued = await self._issuer.renew_service()
        return pb2.RenewServiceTokenResponse(bearer_token=issued.text, token=token_message(issued.record))

    async def ListTokens(self, request: pb2.ListTokensRequest, context: Any) -> pb2.ListTokensResponse:
        """Lists tokens that have not expired."""
        caller, now = current_principal.get(), self._core.clock.time()
        query = tokens.all_tokens().where(
            tables.tokens.c.expires_at > now,
            tables.tokens.c.kind.in_([kind.value for kind in token_kinds(request.kinds)]),
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
        page = await self._core.database.read(lambda c: tokens.ORDERING.page(c, request, query))
        return pb2.ListTokensResponse(
            tokens=[token_message(tokens.issued(row)) for row in page.rows],
            next_page_token=page.next_page_token,
        )

    async def UpdateToken(self, request: pb2.UpdateTokenRequest, context: Any) -> pb2.UpdateTokenResponse:
        """Changes the description of a token."""
        update_paths(request.update_mask, allowed=_UPDATABLE)
        description = request.token.description
        check_length(description, field="token.description", most=_DESCRIPTION_LENGTH)
        known = await self._core.database.read(lambda c: tokens.get(c, request.token.token_id))
        require_own_or_admin(known.username, "change tokens of")
        now = self._core.clock.time()

        def work(connection: Connection) -> IssuedToken:
            tokens.describe(connection, known.id, description)
            audit.record(connection, "update_token", _holder(known), now=now, token=known.id)
            return tokens.get(connection, known.id)

        return pb2.UpdateTokenResponse(token=token_message(await self._core.database.write(work)))

    async def RevokeToken(self, request: pb2.RevokeTokenRequest, context: Any) -> pb2.RevokeTokenResponse:
        """Revokes a token, and those that end with it."""
        known = await self._core.database.read(lambda c: tokens.get(c, request.token_id))
        require_own_or_admin(known.username, "revoke tokens of")
        now = self._core.clock.time()

        def work(connection: Connection) -> IssuedToken:
            tokens.revoke(connection, known.id)
            audit.record(connection, "revoke_token", _holder(known), now=now, token=known.id)
            return tokens.get(connection, known.id)

        token = await self._core.database.write(work)
        await refresh_revoked(self._core, self._revoked)
        return pb2.RevokeTokenResponse(token=token_message(token))

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


def _holder(token: IssuedToken) -> str:
    return f"service {token.service}" if token.service else f"user {token.username}"


async def refresh_revoked(core: ServiceContext, revoked: RevokedTokens) -> Sequence[str]:
    """Reads again which tokens are revoked, notes them in ``revoked``, and returns their identifiers."""
    now = core.clock.time()
    current = await core.database.read(lambda c: tokens.revoked(c, now=now))
    revoked.replace(current)
    return current


def require_own_or_admin(username: str, what: str) -> None:
    """Lets users do what concerns themselves, and admins everything.

    Raises:
        PermissionDeniedError: It concerns another user.
    """
    caller = current_principal.get()
    if isinstance(caller, User) and caller.role is not Role.ADMIN and caller.name != username:
        raise PermissionDeniedError(f"user {caller.name} may not {what} user {username}; ask an admin")


def _wanted(
    request: pb2.CreateTokenRequest | pb2.CreateServiceTokenRequest, *, default_ttl: float
) -> TokenParameters:
    ttl = seconds_of(request.ttl) if request.HasField("ttl") else default_ttl
    if not 1 <= ttl <= _LONGEST_TTL:
        raise invalid("ttl", f"ttl is {ttl:g} s; it must be from 1 s to {_LONGEST_TTL:.0f} s")
    check_length(request.description, field="description", most=_DESCRIPTION_LENGTH)
    return TokenParameters(ttl=ttl, description=request.description)
