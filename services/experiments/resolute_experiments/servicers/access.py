"""Handlers of AccessService."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1 import access_service_pb2_grpc
from resolute.contracts.values import to_value
from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PermissionDeniedError,
    UnauthenticatedError,
    Violation,
)
from resolute_experiments.context import ServiceContext
from resolute_experiments.passwords import LoginThrottle, hash_password, matches
from resolute_experiments.servicers.messages import timestamp
from resolute_experiments.store import access, tokens, users
from resolute_experiments.store.tokens import IssuedToken
from resolute_experiments.store.users import Account
from resolute_serving.auth.tokens import RevokedTokens, TokenSigner, public_bytes
from resolute_serving.context import Role, ServiceAccount, User, current_principal
from resolute_serving.pagination import decode_token, encode_token, page_size

_DEFAULT_TTL = 30 * 86_400
_LONGEST_TTL = 365 * 86_400
_NAME = re.compile(r"[\w.@-]{1,128}", re.ASCII)
_ROLES = {
    pb2.USER_ROLE_VIEWER: Role.VIEWER,
    pb2.USER_ROLE_EDITOR: Role.EDITOR,
    pb2.USER_ROLE_ADMIN: Role.ADMIN,
}
_ROLE_NUMBERS = {role: number for number, role in _ROLES.items()}

T = TypeVar("T")


@dataclass(frozen=True)
class _Issued:
    """A token that was just made."""

    text: str
    record: IssuedToken


class AccessServicer(access_service_pb2_grpc.AccessServiceServicer):
    """Users, the tokens that speak for them, and the record of what they did.

    Args:
        core: What all handlers of this service share.
        signer: Issues tokens.
        ended: Where the verifier of this process reads which tokens were ended early.
    """

    def __init__(self, core: ServiceContext, signer: TokenSigner, ended: RevokedTokens) -> None:
        self._core = core
        self._signer = signer
        self._ended = ended
        self._attempts = LoginThrottle(core.clock)

    async def GetVerificationKeys(
        self, request: pb2.GetVerificationKeysRequest, context: Any
    ) -> pb2.GetVerificationKeysResponse:
        """Gives the keys that verify this cluster's tokens."""
        now = self._core.clock.time()
        key = pb2.VerificationKey(
            key_id=self._signer.key_id, public_key=public_bytes(self._signer.public_key)
        )
        ended = await self._core.database.read(lambda c: tokens.revoked(c, now=now))
        # Another replica may have ended some of these.
        self._ended.replace(ended)
        return pb2.GetVerificationKeysResponse(keys=[key], revoked_token_ids=ended)

    async def Login(self, request: pb2.LoginRequest, context: Any) -> pb2.LoginResponse:
        """Gives a token in return for a password."""
        self._attempts.check(request.username)
        account = await self._core.database.read(lambda c: users.find(c, request.username))
        stored = account.password if account is not None and account.active else ""
        if not await asyncio.to_thread(matches, request.password, stored) or account is None:
            self._attempts.failed(request.username)
            raise UnauthenticatedError(
                "the name or the password is wrong, or the user has no password or is deactivated; "
                "an admin can set one with `resolute user change-password NAME`"
            )
        self._attempts.succeeded(request.username)
        issued = await self._issue(request.username, ttl=_DEFAULT_TTL, description="login", action="login")
        return pb2.LoginResponse(token=issued.text, expire_time=timestamp(issued.record.expires_at))

    async def GetCurrentUser(
        self, request: pb2.GetCurrentUserRequest, context: Any
    ) -> pb2.GetCurrentUserResponse:
        """Tells who the caller is."""
        principal = current_principal.get()
        if isinstance(principal, User):
            return pb2.GetCurrentUserResponse(username=principal.name, role=principal.role.value)
        if isinstance(principal, ServiceAccount):
            return pb2.GetCurrentUserResponse(username=f"service:{principal.name}", role="service")
        raise PermissionDeniedError("a trial's token speaks for no user")

    async def CreateUser(self, request: pb2.CreateUserRequest, context: Any) -> pb2.CreateUserResponse:
        """Creates a user."""
        if not _NAME.fullmatch(request.name):
            message = f"{request.name!r} is no name: 1 to 128 letters, digits and . _ - @"
            raise InvalidArgumentError(message, violations=[Violation("name", message)])
        user = User(request.name, _role(request.role))
        now = self._core.clock.time()
        account = await self._change(
            lambda c: users.create(c, user, now=now), "create_user", request.name, role=user.role.value
        )
        return pb2.CreateUserResponse(user=_account(account))

    async def ListUsers(self, request: pb2.ListUsersRequest, context: Any) -> pb2.ListUsersResponse:
        """Lists users by name."""
        limit = page_size(request.page_size)
        after = decode_token(request) or ""
        found = await self._core.database.read(lambda c: users.page(c, after=after, limit=limit + 1))
        return pb2.ListUsersResponse(
            users=[_account(account) for account in found[:limit]],
            next_page_token=encode_token(request, found[limit - 1].name) if len(found) > limit else "",
        )

    async def UpdateUser(self, request: pb2.UpdateUserRequest, context: Any) -> pb2.UpdateUserResponse:
        """Changes a user's role, or lets nobody act as the user any more."""
        wanted = None if request.role == pb2.USER_ROLE_UNSPECIFIED else _role(request.role)

        def work(connection: Connection) -> Account:
            account = users.get(connection, request.name)
            active = request.active if request.HasField("active") else account.active
            role = wanted or account.role
            users.update(connection, account.name, role=role, active=active)
            if users.active_admins(connection) == 0:
                raise FailedPreconditionError(
                    f"user {account.name} is the last active admin; make another user an admin first"
                )
            if (role, active) != (account.role, account.active):
                tokens.revoke_all(connection, account.name)
            return users.get(connection, account.name)

        detail = {"role": wanted.value} if wanted else {}
        if request.HasField("active"):
            detail["active"] = str(request.active).lower()
        account = await self._change(work, "update_user", request.name, **detail)
        await self._refresh()
        return pb2.UpdateUserResponse(user=_account(account))

    async def SetPassword(self, request: pb2.SetPasswordRequest, context: Any) -> pb2.SetPasswordResponse:
        """Sets a password and ends the user's tokens."""
        _own_or_admin(request.username, "change the password of")
        hashed = await asyncio.to_thread(hash_password, request.password)

        def work(connection: Connection) -> None:
            users.set_password(connection, users.get(connection, request.username).name, hashed)
            tokens.revoke_all(connection, request.username)

        await self._change(work, "set_password", request.username)
        await self._refresh()
        return pb2.SetPasswordResponse()

    async def CreateToken(self, request: pb2.CreateTokenRequest, context: Any) -> pb2.CreateTokenResponse:
        """Issues a token for a user."""
        if not 0 <= request.ttl_seconds <= _LONGEST_TTL:
            raise InvalidArgumentError(
                f"ttl_seconds is {request.ttl_seconds}; it must be between 0 and {_LONGEST_TTL}"
            )
        caller = current_principal.get()
        name = request.username or (caller.name if isinstance(caller, User) else "")
        _own_or_admin(name, "issue tokens for")
        issued = await self._issue(
            name,
            ttl=request.ttl_seconds or _DEFAULT_TTL,
            description=request.description,
            action="create_token",
        )
        return pb2.CreateTokenResponse(
            token=issued.text,
            expire_time=timestamp(issued.record.expires_at),
            token_id=issued.record.id,
        )

    async def ListTokens(self, request: pb2.ListTokensRequest, context: Any) -> pb2.ListTokensResponse:
        """Lists the tokens that were issued and have not expired, newest first."""
        caller = current_principal.get()
        own = caller.name if isinstance(caller, User) and caller.role is not Role.ADMIN else ""
        if own and request.username not in {"", own}:
            _own_or_admin(request.username, "list the tokens of")
        limit, before, now = page_size(request.page_size), decode_token(request), self._core.clock.time()
        found = await self._core.database.read(
            lambda c: tokens.page(
                c, username=own or request.username, now=now, before=before, limit=limit + 1
            )
        )
        return pb2.ListTokensResponse(
            tokens=[_token(token) for token in found[:limit]],
            next_page_token=encode_token(request, found[limit - 1].position) if len(found) > limit else "",
        )

    async def RevokeToken(self, request: pb2.RevokeTokenRequest, context: Any) -> pb2.RevokeTokenResponse:
        """Ends a token before its time."""
        known = await self._core.database.read(lambda c: tokens.get(c, request.token_id))
        _own_or_admin(known.username, "revoke tokens of")

        def work(connection: Connection) -> IssuedToken:
            tokens.revoke(connection, known.id)
            return tokens.get(connection, known.id)

        token = await self._change(work, "revoke_token", known.username, token=known.id)
        await self._refresh()
        return pb2.RevokeTokenResponse(token=_token(token))

    async def ListAuditRows(
        self, request: pb2.ListAuditRowsRequest, context: Any
    ) -> pb2.ListAuditRowsResponse:
        """Lists what was changed by whom, newest first."""
        limit, before = page_size(request.page_size), decode_token(request)
        found = await self._core.database.read(
            lambda c: access.list_audit(
                c, by=request.actor, resource=request.resource, before=before, limit=limit + 1
            )
        )
        return pb2.ListAuditRowsResponse(
            rows=[
                pb2.AuditRow(
                    time=timestamp(row.time),
                    actor=row.actor,
                    action=row.action,
                    resource=row.resource,
                    detail=to_value(row.detail),
                )
                for row in found[:limit]
            ],
            next_page_token=encode_token(request, found[limit - 1].position) if len(found) > limit else "",
        )

    async def _issue(self, name: str, *, ttl: int, description: str, action: str) -> _Issued:
        now = self._core.clock.time()

        def work(connection: Connection) -> _Issued:
            user = users.get(connection, name).user
            record = IssuedToken(
                id=str(uuid.uuid4()),
                username=user.name,
                description=description,
                created_at=now,
                expires_at=now + ttl,
                revoked=False,
            )
            tokens.insert(connection, record)
            return _Issued(self._signer.user(user, ttl=ttl, token_id=record.id), record)

        return await self._change(work, action, name, ttl=ttl)

    async def _change(self, work: Callable[[Connection], T], action: str, username: str, **detail: Any) -> T:
        """Makes a change and writes its audit row in one transaction."""
        now = self._core.clock.time()

        def recorded(connection: Connection) -> T:
            result = work(connection)
            access.record(connection, action, f"user {username}", now=now, **detail)
            return result

        return await self._core.database.write(recorded)

    async def _refresh(self) -> None:
        now = self._core.clock.time()
        self._ended.replace(await self._core.database.read(lambda c: tokens.revoked(c, now=now)))


def _own_or_admin(username: str, what: str) -> None:
    """Lets users do what concerns themselves, and admins everything."""
    caller = current_principal.get()
    if isinstance(caller, User) and caller.role is not Role.ADMIN and caller.name != username:
        raise PermissionDeniedError(
            f"user {caller.name} may not {what} user {username}; ask an admin, or leave the name out"
        )


def _role(number: pb2.UserRole.ValueType) -> Role:
    if number not in _ROLES:
        message = "role is missing; it is one of viewer, editor, admin"
        raise InvalidArgumentError(message, violations=[Violation("role", message)])
    return _ROLES[number]


def _account(account: Account) -> pb2.UserAccount:
    return pb2.UserAccount(
        name=account.name,
        role=_ROLE_NUMBERS[account.role],
        active=account.active,
        has_password=bool(account.password),
        create_time=timestamp(account.created_at),
    )


def _token(token: IssuedToken) -> pb2.TokenRecord:
    return pb2.TokenRecord(
        token_id=token.id,
        username=token.username,
        description=token.description,
        create_time=timestamp(token.created_at),
        expire_time=timestamp(token.expires_at),
        revoked=token.revoked,
    )
