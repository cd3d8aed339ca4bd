"""Handlers of AccessService: users and the audit trail."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1 import user_pb2
from resolute.contracts.times import seconds_of
from resolute.errors import FailedPreconditionError, PermissionDeniedError, QuotaError, UnauthenticatedError
from resolute_experiments.accounts.attempts import SignInAttempts
from resolute_experiments.accounts.issuing import TokenIssuer
from resolute_experiments.accounts.names import is_user_name
from resolute_experiments.accounts.openid.id_tokens import IdTokenVerifier
from resolute_experiments.accounts.openid.provider_accounts import has_identity
from resolute_experiments.accounts.passwords import hash_password, is_outdated, matches, require_good
from resolute_experiments.accounts.servicers.tokens import refresh_revoked, require_own_or_admin
from resolute_experiments.accounts.servicers.user_messages import (
    ROLE_NUMBERS,
    audit_message,
    refusal_of,
    role_of,
    token_message,
    user_message,
)
from resolute_experiments.accounts.store import tokens, users
from resolute_experiments.accounts.store.users import Account
from resolute_experiments.context import ServiceContext
from resolute_experiments.store import audit
from resolute_experiments.store import schema as tables
from resolute_experiments.store.schema import IDEMPOTENCY_KEYS
from resolute_serving.auth.refusals import MOST_KINDS, Refusals, client_address
from resolute_serving.auth.tokens import RevokedTokens, TokenSigner, key_id, public_bytes
from resolute_serving.context import ServiceAccount, User, current_peer, current_principal, current_token_id
from resolute_serving.filters import any_of, equals
from resolute_serving.updates import check_etag, update_paths
from resolute_serving.validation import invalid, required_id

T = TypeVar("T")
_DEVICE_SECONDS = 365 * 86_400.0
_HASHES = max(2, (os.cpu_count() or 1) // 2)
"""Passwords that are hashed at a time."""
_UPDATABLE = ("name", "role", "active")


class UserHandlers:
    """The part of AccessService about users, sign-in and the audit trail.

    Args:
        core: The context that all handlers share.
        signer: Signs tokens, and identifies devices by their tokens.
        issuer: Issues tokens.
        revoked: The revoked tokens, which the verifier of this process reads.
        refusals: The refused calls, for the audit log.
        id_tokens: Verifies tokens of the OpenID provider; None if users sign in only with passwords.
    """

    def __init__(
        self,
        core: ServiceContext,
        signer: TokenSigner,
        *,
        issuer: TokenIssuer,
        revoked: RevokedTokens,
        refusals: Refusals,
        id_tokens: IdTokenVerifier | None = None,
    ) -> None:
        self._core = core
        self._signer = signer
        self._revoked = revoked
        self._refusals = refusals
        self._issuer = issuer
        self._attempts = SignInAttempts(core.clock)
        self._id_tokens = id_tokens
        self._hashing = asyncio.Semaphore(_HASHES)

    async def GetVerificationKeys(
        self, request: pb2.GetVerificationKeysRequest, context: Any
    ) -> pb2.GetVerificationKeysResponse:
        """Returns the keys that verify this cluster's tokens."""
        keys = [
            pb2.VerificationKey(key_id=key_id(key), public_key=public_bytes(key))
            for key in self._signer.public_keys
        ]
        # Another replica may have revoked some of these.
        revoked = await refresh_revoked(self._core, self._revoked)
        return pb2.GetVerificationKeysResponse(keys=keys, revoked_token_ids=revoked)

    async def Login(self, request: pb2.LoginRequest, context: Any) -> pb2.LoginResponse:
        """Returns a token for a name and a password."""
        name = request.user_name
        peer = client_address(current_peer.get())
        account = await self._core.database.read(lambda c: users.find(c, name))
        number = account.number if account is not None else 0
        device = self._signer.device_id(request.device_token, user_id=number)
        try:
            async with self._attempts.attempt(name, peer=peer, device=device) as succeeded:
                stored = account.password if account is not None and account.active else ""
                if not await self._hash(partial(matches, request.password, stored)):
                    raise UnauthenticatedError(
                        "the name or the password is wrong, or the user has no password or is deactivated; "
                        "an admin can set one with `resolute user change-password NAME`"
                    )
                succeeded()
        except (UnauthenticatedError, QuotaError) as error:
            action = "login_limited" if isinstance(error, QuotaError) else "login_failed"
            self._refusals.note(action, f"user {_shown(name)}", peer=peer)
            raise
        if is_outdated(stored):
            await self._hash_anew(number, request.password, stored)
        issued = await self._issuer.sign_in(number)
        return pb2.LoginResponse(
            bearer_token=issued.text,
            token=token_message(issued.record),
            device_token=self._signer.device(number, ttl=_DEVICE_SECONDS, device_id=device),
        )

    async def GetSignInMethods(
        self, request: pb2.GetSignInMethodsRequest, context: Any
    ) -> pb2.GetSignInMethodsResponse:
        """Returns how people can sign in."""
        response = pb2.GetSignInMethodsResponse()
        if self._id_tokens is not None:
            provider = self._id_tokens.settings
            response.openid_provider.issuer = provider.issuer
            response.openid_provider.client_id = provider.client_id
            response.openid_provider.scopes.extend(provider.scopes)
        return response

    async def LoginWithIdToken(
        self, request: pb2.LoginWithIdTokenRequest, context: Any
    ) -> pb2.LoginWithIdTokenResponse:
        """Returns a token for an ID token of the OpenID provider."""
        if self._id_tokens is None:
            raise FailedPreconditionError("this cluster has no OpenID provider; sign in with a password")
        try:
            identity = await self._id_tokens.verify(request.id_token, nonce=request.nonce)
            issued = await self._issuer.sign_in_identity(self._id_tokens.settings, identity)
        except (UnauthenticatedError, PermissionDeniedError) as error:
            self._refusals.note("login_failed", "ID token", peer=client_address(current_peer.get()))
            if isinstance(error, PermissionDeniedError):  # which may have ended tokens
                await refresh_revoked(self._core, self._revoked)
            raise
        await refresh_revoked(self._core, self._revoked)
        return pb2.LoginWithIdTokenResponse(bearer_token=issued.text, token=token_message(issued.record))

    async def CreateSignInCode(
        self, request: pb2.CreateSignInCodeRequest, context: Any
    ) -> pb2.CreateSignInCodeResponse:
        """Issues a code that signs the caller in once."""
        caller = current_principal.get()
        if not isinstance(caller, User):
            raise PermissionDeniedError("only users can sign in; create the code with the token of a user")
        created = await self._issuer.create_code(caller.name)
        return pb2.CreateSignInCodeResponse(
            code=created.text, expire_time=token_message(created.record).expire_time
        )

    async def RedeemSignInCode(
        self, request: pb2.RedeemSignInCodeRequest, context: Any
    ) -> pb2.RedeemSignInCodeResponse:
        """Returns a token for a code, once."""
        try:
            issued = await self._issuer.redeem_code(request.code)
        except UnauthenticatedError:
            self._refusals.note("login_failed", "sign-in code", peer=client_address(current_peer.get()))
            raise
        return pb2.RedeemSignInCodeResponse(bearer_token=issued.text, token=token_message(issued.record))

    async def GetCurrentUser(
        self, request: pb2.GetCurrentUserRequest, context: Any
    ) -> pb2.GetCurrentUserResponse:
        """Returns the caller."""
        principal = current_principal.get()
        if isinstance(principal, ServiceAccount):
            return pb2.GetCurrentUserResponse(service_name=principal.name)
        if not isinstance(principal, User):
            raise PermissionDeniedError("a trial's token belongs to no user")
        account = await self._core.database.read(lambda c: users.find(c, principal.name))
        if account is None:
            role = ROLE_NUMBERS[principal.role]
            return pb2.GetCurrentUserResponse(user=user_pb2.User(name=principal.name, role=role, active=True))
        return pb2.GetCurrentUserResponse(user=user_message(account))

    async def CreateUser(self, request: pb2.CreateUserRequest, context: Any) -> pb2.CreateUserResponse:
        """Creates a user."""
        user = User(_user_name(request.name, field="name"), role_of(request.role, field="role"))
        now = self._core.clock.time()

        def work(connection: Connection) -> Account:
            def create() -> str:
                made = users.create(connection, user, active=not request.inactive, now=now)
                self._record(connection, "create_user", user.name, role=user.role.value)
                return str(made.number)

            number = IDEMPOTENCY_KEYS.once(connection, request, create, now=now)
            return users.get(connection, number=int(number))

        return pb2.CreateUserResponse(user=user_message(await self._core.database.write(work)))

    async def ListUsers(self, request: pb2.ListUsersRequest, context: Any) -> pb2.ListUsersResponse:
        """Lists users."""
        table = tables.users
        query = sa.select(table).where(
            *any_of(request, {"names": table.c.name, "user_ids": table.c.number}),
            *equals(request, {"active": table.c.active}),
        )
        if request.roles:
            query = query.where(table.c.role.in_([role_of(r, field="roles").value for r in request.roles]))
        page = await self._core.database.read(lambda c: users.ORDERING.page(c, request, query))
        return pb2.ListUsersResponse(
            users=[user_message(users.account(row)) for row in page.rows],
            next_page_token=page.next_page_token,
        )

    async def UpdateUser(self, request: pb2.UpdateUserRequest, context: Any) -> pb2.UpdateUserResponse:
        """Changes a user's name or role, or whether anybody may act as the user."""
        wanted = request.user
        paths = update_paths(request.update_mask, allowed=_UPDATABLE)
        number = required_id(wanted.user_id, field="user.user_id")
        if "name" in paths:
            _user_name(wanted.name, field="user.name")
        role = role_of(wanted.role, field="user.role") if "role" in paths else None

        def work(connection: Connection) -> Account:
            before = users.get(connection, number=number)
            check_etag(request.etag, revision=before.revision, resource=f"user {before.name}")
            name = wanted.name if "name" in paths else before.name
            active = wanted.active if "active" in paths else before.active
            if (name, role or before.role, active) == (before.name, before.role, before.active):
                return before
            tokens.revoke_all(connection, before.name)
            after = users.update(connection, before, name=name, role=role or before.role, active=active)
            if users.active_admins(connection) == 0:
                raise FailedPreconditionError(
                    f"user {before.name} is the last active admin; make another user an admin first"
                )
            self._record(connection, "update_user", before.name, **_changes(before, after))
            return after

        account = await self._core.database.write(work)
        await refresh_revoked(self._core, self._revoked)
        return pb2.UpdateUserResponse(user=user_message(account))

    async def SetPassword(self, request: pb2.SetPasswordRequest, context: Any) -> pb2.SetPasswordResponse:
        """Sets a password and revokes the user's tokens."""
        number = required_id(request.user_id, field="user_id")
        known, provided = await self._core.database.read(
            lambda c: (users.get(c, number=number), has_identity(c, number))
        )
        require_own_or_admin(known.name, "change the password of")
        caller = current_principal.get()
        # With a password of one's own, one would get in after the provider has let one go.
        if provided and isinstance(caller, User) and caller.name == known.name:
            raise PermissionDeniedError(
                f"the OpenID provider signs user {known.name} in; another admin may set a password"
            )
        require_good(request.password, user_name=known.name)
        hashed = await self._hash(partial(hash_password, request.password))
        # Who changes the own password stays signed in where it was changed.
        own = isinstance(caller, User) and caller.name == known.name
        keep = current_token_id.get() if own else ""

        def work(connection: Connection) -> Account:
            account = users.set_password(connection, number, hashed)
            tokens.revoke_all(connection, account.name, keep=keep)
            self._record(connection, "set_password", account.name)
            return account

        account = await self._core.database.write(work)
        await refresh_revoked(self._core, self._revoked)
        return pb2.SetPasswordResponse(user=user_message(account))

    async def _hash(self, work: Callable[[], T]) -> T:
        """Does something with a password's hash in a thread, a few at a time: each takes 128 MiB."""
        async with self._hashing:
            return await asyncio.to_thread(work)

    async def _hash_anew(self, number: int, password: str, stored: str) -> None:
        """Replaces a hash that was made at less cost, now that the password is at hand."""
        hashed = await self._hash(partial(hash_password, password))
        await self._core.database.write(lambda c: users.replace_hash(c, number, stored, hashed))

    async def RecordRefusals(
        self, request: pb2.RecordRefusalsRequest, context: Any
    ) -> pb2.RecordRefusalsResponse:
        """Takes what a service refused."""
        if len(request.refusals) > MOST_KINDS:
            raise invalid(
                "refusals", f"refusals has {len(request.refusals)} elements; {MOST_KINDS} are allowed"
            )
        for message in request.refusals:
            self._refusals.add(refusal_of(message))
        return pb2.RecordRefusalsResponse()

    async def ListAuditRows(
        self, request: pb2.ListAuditRowsRequest, context: Any
    ) -> pb2.ListAuditRowsResponse:
        """Lists the changes that were made."""
        table = tables.audit
        columns = {
            "actors": table.c.actor,
            "user_ids": table.c.user_number,
            "actions": table.c.action,
            "resources": table.c.resource,
        }
        query = sa.select(table).where(*any_of(request, columns))
        if request.HasField("start_time"):
            query = query.where(table.c.time >= seconds_of(request.start_time))
        if request.HasField("end_time"):
            query = query.where(table.c.time < seconds_of(request.end_time))
        page = await self._core.database.read(lambda c: audit.ORDERING.page(c, request, query))
        return pb2.ListAuditRowsResponse(
            rows=[audit_message(row) for row in page.rows], next_page_token=page.next_page_token
        )

    def _record(self, connection: Connection, action: str, user_name: str, **detail: Any) -> None:
        audit.record(connection, action, f"user {user_name}", now=self._core.clock.time(), **detail)


def _user_name(name: str, *, field: str) -> str:
    if not is_user_name(name):
        raise invalid(
            field, f"{name[:200]!r} is not a valid name: 1 to 128 letters, digits and . _ - @, no dash first"
        )
    return name


def _shown(name: str) -> str:
    """A name that a stranger gave, for the audit log."""
    return name if is_user_name(name) else "(not a valid name)"


def _changes(before: Account, after: Account) -> dict[str, str]:
    pairs = {
        "name": (before.name, after.name),
        "role": (before.role.value, after.role.value),
        "active": (str(before.active).lower(), str(after.active).lower()),
    }
    return {field: new for field, (old, new) in pairs.items() if new != old}
