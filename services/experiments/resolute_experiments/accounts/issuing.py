"""Issues tokens, and determines their expiry.

A token that was issued with another token ends with it: it expires no later, and is revoked with it. A token
that was issued after a sign-in with a password has its own expiry, because the user could sign in again. A
token that was issued after a sign-in by the OpenID provider ends with that sign-in, because only the provider
knows whether the user could sign in again. Tokens of services do not depend on their issuer.
"""

from __future__ import annotations

import hashlib
import secrets
import uuid
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.engine import Connection

from resolute.errors import PermissionDeniedError, UnauthenticatedError
from resolute_experiments.accounts.openid.id_tokens import Identity
from resolute_experiments.accounts.openid.provider_accounts import account_of
from resolute_experiments.accounts.openid.settings import OpenIdSettings
from resolute_experiments.accounts.store import tokens, users
from resolute_experiments.accounts.store.tokens import (
    RENEWABLE_SECONDS,
    IssuedToken,
    TokenKind,
    TokenScope,
)
from resolute_experiments.accounts.store.users import Account
from resolute_experiments.context import ServiceContext
from resolute_experiments.store import audit
from resolute_experiments.store.schema import IDEMPOTENCY_KEYS
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.context import Role, ServiceAccount, User, current_token_id

_SIGN_IN_SECONDS = 30 * 86_400.0
_BROWSER_SECONDS = 7 * 86_400.0
_PROVIDER_SECONDS = 7 * 86_400.0
"""Shorter than for a password: groups that change at the provider count from the next sign-in."""
_CODE_SECONDS = 600.0
_CODE_BYTES = 24
_OPENID_SIGN_IN = "openid.sign_in"
_OPERATOR_SECONDS = 365 * 86_400.0
_SERVICE_RENEWAL_SECONDS = 86_400.0
OPERATOR = User("admin", Role.ADMIN, user_id=1)
"""The first user of every cluster."""
_WRONG_CODE = (
    "the sign-in code is unknown, was used before or has expired; `resolute user sign-in-link` prints another"
)


@dataclass(frozen=True)
class SignedToken:
    """A newly signed token."""

    text: str
    """The token itself."""
    record: IssuedToken
    """What is stored of it."""


@dataclass(frozen=True, kw_only=True)
class TokenParameters:
    """The parameters of a requested token."""

    ttl: float
    """Seconds that it is valid."""
    description: str
    """What it is for."""
    scope: TokenScope = TokenScope.ALL


class TokenIssuer:
    """Issues tokens of users and services.

    Args:
        core: The context that all handlers share.
        signer: Signs tokens.
    """

    def __init__(self, core: ServiceContext, signer: TokenSigner) -> None:
        self._core = core
        self._signer = signer

    async def create(self, number: int, wanted: TokenParameters, *, request: Any) -> SignedToken:
        """Issues a token that a caller asked for, once for each request id.

        Args:
            number: Id of the user.
            wanted: What the token shall be.
            request: The request, with its id.

        Raises:
            UnauthenticatedError: The caller's own token was revoked meanwhile.
        """
        now = self._core.clock.time()

        def work(connection: Connection) -> SignedToken:
            account = users.get(connection, number=number)

            def create() -> str:
                parent = _parent(connection)
                expires_at = min(now + wanted.ttl, parent.expires_at if parent else float("inf"))
                token = _user_token(
                    account,
                    wanted.description,
                    created_at=now,
                    expires_at=expires_at,
                    parent_id=parent.id if parent else None,
                    scope=wanted.scope,
                )
                return _insert(connection, token, action="create_token")

            token_id = IDEMPOTENCY_KEYS.once(connection, request, create, now=now)
            return self._sign_user(account, tokens.get(connection, token_id), now=now)

        return await self._core.database.write(work)

    async def sign_in(self, number: int) -> SignedToken:
        """Issues a token for a password that was right."""
        now = self._core.clock.time()

        def work(connection: Connection) -> SignedToken:
            account = users.get(connection, number=number)
            expires_at = now + _SIGN_IN_SECONDS
            token = _user_token(
                account, "login", created_at=now, expires_at=expires_at, kind=TokenKind.SIGN_IN
            )
            token_id = _insert(connection, token, action="login")
            return self._sign_user(account, tokens.get(connection, token_id), now=now)

        return await self._core.database.write(work)

    async def sign_in_identity(self, settings: OpenIdSettings, identity: Identity) -> SignedToken:
        """Issues a token for somebody whom the OpenID provider has signed in.

        Args:
            settings: The provider.
            identity: The person.

        Raises:
            PermissionDeniedError: No group of the person has a role, or the name belongs to another user.
            UnauthenticatedError: The user is deactivated, or the ID token was used before.
            FailedPreconditionError: The cluster would have no admin left.
        """
        now = self._core.clock.time()

        def work(connection: Connection) -> SignedToken | None:
            if not IDEMPOTENCY_KEYS.first_use(connection, _OPENID_SIGN_IN, identity.token_digest, now=now):
                raise UnauthenticatedError("this ID token was used before; sign in again")
            account = account_of(connection, settings, identity, now=now)
            if account is None:
                return None
            token = _user_token(
                account,
                "login by the OpenID provider",
                created_at=now,
                expires_at=now + _PROVIDER_SECONDS,
                kind=TokenKind.PROVIDER_SIGN_IN,
            )
            token_id = _insert(connection, token, action="login")
            return self._sign_user(account, tokens.get(connection, token_id), now=now)

        issued = await self._core.database.write(work)
        # After the transaction: what it took away must stay away.
        if issued is None:
            raise PermissionDeniedError(
                f"none of the groups of {identity.name[:100]!r} has a role in this cluster; ask an operator"
            )
        return issued

    async def create_code(self, user: str) -> SignedToken:
        """Issues a code that signs a user in once; its text is the code.

        The code begins with the user's name, so that a page can say whose session it begins: in a link that
        somebody sent, it may be another's. With another name it is another code.

        Args:
            user: Name of the user.
        """
        now = self._core.clock.time()
        code = f"{user}.{secrets.token_urlsafe(_CODE_BYTES)}"

        def work(connection: Connection) -> SignedToken:
            account = users.get(connection, name=user)
            parent = _parent(connection)
            token = _user_token(
                account,
                "sign-in code",
                token_id=_code_id(code),
                created_at=now,
                expires_at=min(now + _CODE_SECONDS, parent.expires_at if parent else float("inf")),
                kind=TokenKind.SIGN_IN_CODE,
                parent_id=parent.id if parent else None,
            )
            _insert(connection, token, action="create_sign_in_code")
            return SignedToken(code, token)

        return await self._core.database.write(work)

    async def redeem_code(self, code: str) -> SignedToken:
        """Issues a token of a browser's session for a code.

        Raises:
            UnauthenticatedError: The code is unknown, was used before, or has expired.
        """
        now = self._core.clock.time()
        # Strangers may call this: a wrong code takes no turn among the writers.
        known = await self._core.database.read(lambda connection: _valid_code(connection, code, now=now))

        def work(connection: Connection) -> SignedToken:
            account = users.get(connection, number=known.user_number)
            parent = tokens.find(connection, known.parent_id) if known.parent_id else None
            # One of several requests with the same code gets here first.
            if not account.active or not tokens.consume(connection, known.id):
                raise UnauthenticatedError(_WRONG_CODE)
            token = _user_token(
                account,
                "browser",
                created_at=now,
                expires_at=min(now + _BROWSER_SECONDS, parent.expires_at if parent else float("inf")),
                kind=TokenKind.BROWSER,
                parent_id=known.parent_id,
            )
            token_id = _insert(connection, token, action="login")
            return self._sign_user(account, tokens.get(connection, token_id), now=now)

        return await self._core.database.write(work)

    async def operator(self, *, description: str) -> SignedToken | None:
        """Signs the operator's token: the one that there is, or a new one if that is revoked or half over.

        Args:
            description: Names it in lists.

        Returns:
            The token; None if the operator's user is deactivated.
        """
        now = self._core.clock.time()

        def work(connection: Connection) -> SignedToken | None:
            account = users.get(connection, number=OPERATOR.user_id)
            if not account.active:
                return None
            known = tokens.current(connection, TokenKind.OPERATOR, user_number=account.number)
            if known is None or known.expires_at - now < _OPERATOR_SECONDS / 2:
                wanted = TokenParameters(ttl=_OPERATOR_SECONDS, description=description)
                known = tokens.get(connection, insert_operator_token(connection, wanted, now=now))
            return self._sign_user(account, known, now=now)

        return await self._core.database.write(work)

    async def create_service(self, service: str, wanted: TokenParameters, *, request: Any) -> SignedToken:
        """Issues a token of a service account, once for each request id.

        Args:
            service: Name of the account.
            wanted: What the token shall be.
            request: The request, with its id.
        """
        now = self._core.clock.time()

        def work(connection: Connection) -> SignedToken:
            def create() -> str:
                return insert_service_token(connection, service, wanted, now=now)

            token_id = IDEMPOTENCY_KEYS.once(connection, request, create, now=now)
            return self._sign_service(tokens.get(connection, token_id), now=now)

        return await self._core.database.write(work)

    async def renew_service(self) -> SignedToken:
        """Lets the calling service's token expire later.

        Raises:
            UnauthenticatedError: It is not known, was revoked, or expired more than a week ago.
        """
        now = self._core.clock.time()
        token_id = current_token_id.get()

        def work(connection: Connection) -> SignedToken:
            known = tokens.find(connection, token_id)
            if known is None or known.revoked or known.expires_at + RENEWABLE_SECONDS <= now:
                raise UnauthenticatedError(
                    "the service's token is not known, was revoked or expired more than a week ago; an admin "
                    "issues another with `python -m resolute_experiments.issue_token`"
                )
            expires_at = max(known.expires_at, now + _SERVICE_RENEWAL_SECONDS)
            if expires_at > known.expires_at:
                tokens.extend(connection, known.id, expires_at=expires_at)
            return self._sign_service(tokens.get(connection, known.id), now=now)

        return await self._core.database.write(work)

    # A repeated call gets the same token signed again: only what the signature needs is stored.

    def _sign_user(self, account: Account, record: IssuedToken, *, now: float) -> SignedToken:
        ttl = record.expires_at - now
        user = replace(account.user, read_only=record.scope is TokenScope.READ)
        return SignedToken(self._signer.user(user, ttl=ttl, token_id=record.id), record)

    def _sign_service(self, record: IssuedToken, *, now: float) -> SignedToken:
        account = ServiceAccount(record.service)
        ttl = record.expires_at - now
        return SignedToken(self._signer.service(account, ttl=ttl, token_id=record.id), record)


def insert_service_token(connection: Connection, service: str, wanted: TokenParameters, *, now: float) -> str:
    """Writes that a token of a service account is issued.

    Returns:
        Its identifier.
    """
    token = IssuedToken(
        id=str(uuid.uuid4()),
        username="",
        user_number=0,
        description=wanted.description,
        created_at=now,
        expires_at=now + wanted.ttl,
        revoked=False,
        kind=TokenKind.SERVICE,
        service=service,
    )
    return _insert(connection, token, action="create_service_token")


def insert_operator_token(connection: Connection, wanted: TokenParameters, *, now: float) -> str:
    """Writes that a token of the operator is issued.

    Returns:
        Its identifier.
    """
    users.ensure(connection, OPERATOR, now=now)
    account = users.get(connection, name=OPERATOR.name)
    token = _user_token(
        account,
        wanted.description,
        created_at=now,
        expires_at=now + wanted.ttl,
        kind=TokenKind.OPERATOR,
    )
    return _insert(connection, token, action="create_operator_token")


def _parent(connection: Connection) -> IssuedToken | None:
    """The token with which the one that is about to be issued ends; None for none."""
    token = tokens.find(connection, current_token_id.get())
    if token is None or token.kind is TokenKind.SIGN_IN:
        return None
    if token.revoked:
        raise UnauthenticatedError("the token was revoked; log in again")
    return token


def _insert(connection: Connection, token: IssuedToken, *, action: str) -> str:
    tokens.insert(connection, token)
    holder = f"service {token.service}" if token.service else f"user {token.username}"
    ttl = token.expires_at - token.created_at
    audit.record(connection, action, holder, now=token.created_at, ttl=ttl, token=token.id)
    return token.id


def _valid_code(connection: Connection, code: str, *, now: float) -> IssuedToken:
    known = tokens.find(connection, _code_id(code))
    if known is None or known.kind is not TokenKind.SIGN_IN_CODE or known.revoked or known.expires_at <= now:
        raise UnauthenticatedError(_WRONG_CODE)
    return known


def _code_id(code: str) -> str:
    """Identifies a code in the database, which does not tell the code itself."""
    return str(uuid.UUID(bytes=hashlib.sha256(code.encode()).digest()[:16]))


def _user_token(account: Account, description: str, *, token_id: str = "", **values: Any) -> IssuedToken:
    return IssuedToken(
        id=token_id or str(uuid.uuid4()),
        username=account.user.name,
        user_number=account.number,
        description=description,
        revoked=False,
        **values,
    )
