"""Users, tokens and the audit trail."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from google.protobuf.field_mask_pb2 import FieldMask

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1 import access_service_pb2_grpc, token_pb2, user_pb2
from resolute.client.connection.paging import all_items
from resolute.client.connection.session import Session
from resolute.client.connection.user_ids import user_id
from resolute.client.schema.accounts import AuditRecord, NewToken, TokenRecord, UserRecord, UserRole
from resolute.contracts.messages import datetime_field, enum_number, from_message
from resolute.contracts.times import to_duration
from resolute.errors import NotFoundError

if TYPE_CHECKING:
    from resolute.client.connection.device_flow import Provider


def role_number(role: UserRole) -> Any:
    """A role as the contract has it."""
    return enum_number(user_pb2.UserRole.DESCRIPTOR, role.name)


class Access:
    """Calls of the access service.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(access_service_pb2_grpc.AccessServiceStub)

    def login(self, username: str, password: str, *, device_token: str = "") -> NewToken:
        """Returns a token in return for a password.

        Args:
            username: Name of the user.
            password: The password.
            device_token: What an earlier login of this user gave: others cannot lock this client out.

        Raises:
            UnauthenticatedError: Name or password are wrong.
            QuotaError: Too many attempts.
        """
        response = self._stub.Login(
            pb2.LoginRequest(user_name=username, password=password, device_token=device_token)
        )
        return replace(_new_token(response), device_token=response.device_token)

    def openid_provider(self) -> Provider | None:
        """Returns the OpenID provider that signs people in; None if the cluster has none."""
        # What it needs for HTTP is not loaded for every command.
        from resolute.client.connection.device_flow import Provider

        response = self._stub.GetSignInMethods(pb2.GetSignInMethodsRequest())
        if not response.HasField("openid_provider"):
            return None
        provider = response.openid_provider
        return Provider(provider.issuer, provider.client_id, tuple(provider.scopes))

    def login_with_id_token(self, id_token: str) -> NewToken:
        """Returns a token in return for an ID token of the cluster's OpenID provider.

        Raises:
            UnauthenticatedError: The ID token is not accepted.
            PermissionDeniedError: No group of the person has a role in the cluster.
        """
        return _new_token(self._stub.LoginWithIdToken(pb2.LoginWithIdTokenRequest(id_token=id_token)))

    def create_sign_in_code(self) -> str:
        """Returns a code that signs the caller in once, within ten minutes."""
        return self._stub.CreateSignInCode(pb2.CreateSignInCodeRequest()).code

    def create_user(self, name: str, role: UserRole, *, active: bool = True) -> UserRecord:
        """Creates a user.

        Args:
            name: Its name.
            role: What the user may do.
            active: Whether anybody may act as the user.

        Raises:
            AlreadyExistsError: The name is taken.
            InvalidArgumentError: It is not a valid name.
        """
        request = pb2.CreateUserRequest(
            request_id=str(uuid.uuid4()), name=name, role=role_number(role), inactive=not active
        )
        return _user(self._stub.CreateUser(request).user)

    def get_user(self, user: str | int) -> UserRecord:
        """Returns a user.

        Args:
            user: Name or id.

        Raises:
            NotFoundError: There is none.
        """
        wanted = {"user_ids": [user]} if isinstance(user, int) else {"names": [user]}
        # Services older than the filter by ids list all users.
        for message in all_items(self._stub.ListUsers, pb2.ListUsersRequest(**wanted), "users"):
            if user in {message.user_id, message.name}:
                return _user(message)
        raise NotFoundError(f"user {user!r} does not exist", resource=f"user {user}")

    def list_users(self, *, names: Sequence[str] = (), active: bool | None = None) -> Iterator[UserRecord]:
        """Yields users by name.

        Args:
            names: Only users of these names; empty for all.
            active: Only users who are active, or only those who are not; None for both.
        """
        request = pb2.ListUsersRequest(names=names, active=active)
        for message in all_items(self._stub.ListUsers, request, "users"):
            yield _user(message)

    def update_user(
        self,
        user: str | int,
        *,
        name: str | None = None,
        role: UserRole | None = None,
        active: bool | None = None,
    ) -> UserRecord:
        """Changes a user's name, role, or whether anybody may act as the user; None leaves a thing as it is.

        Args:
            user: Name or id.
            name: What the user is called from now on.
            role: What the user may do.
            active: Whether the user may log in and use tokens.

        Raises:
            NotFoundError: There is none of this name.
            FailedPreconditionError: There would be no admin any more.
        """
        wanted, paths = user_pb2.User(user_id=self._user_id(user)), []
        if name is not None:
            wanted.name = name
            paths.append("name")
        if role is not None:
            wanted.role = role_number(role)
            paths.append("role")
        if active is not None:
            wanted.active = active
            paths.append("active")
        request = pb2.UpdateUserRequest(user=wanted, update_mask=FieldMask(paths=paths))
        return _user(self._stub.UpdateUser(request).user)

    def set_password(self, user: str | int, password: str) -> None:
        """Sets a password, and ends all tokens of the user."""
        self._stub.SetPassword(pb2.SetPasswordRequest(user_id=self._user_id(user), password=password))

    def create_token(
        self, username: str = "", *, ttl_seconds: int = 0, description: str = "", read_only: bool = False
    ) -> NewToken:
        """Issues a token.

        Args:
            username: Whom it speaks for; empty for the caller.
            ttl_seconds: How long it is valid; zero for 30 days.
            description: What it is for.
            read_only: Whether it may only read, with the role viewer at most.
        """
        request = pb2.CreateTokenRequest(
            request_id=str(uuid.uuid4()),
            user_id=self._user_id(username) if username else None,
            ttl=to_duration(ttl_seconds) if ttl_seconds else None,
            description=description,
            scope=token_pb2.TOKEN_SCOPE_READ if read_only else token_pb2.TOKEN_SCOPE_ALL,
        )
        return _new_token(self._stub.CreateToken(request))

    def list_tokens(self, username: str = "") -> Iterator[TokenRecord]:
        """Yields tokens that have not expired, newest first; all that the caller may see without a name."""
        request = pb2.ListTokensRequest(user_ids=[self._user_id(username)] if username else [])
        for message in all_items(self._stub.ListTokens, request, "tokens"):
            yield _token(message)

    def describe_token(self, token_id: str, description: str) -> TokenRecord:
        """Changes the description of a token."""
        wanted = token_pb2.Token(token_id=token_id, description=description)
        mask = FieldMask(paths=["description"])
        return _token(self._stub.UpdateToken(pb2.UpdateTokenRequest(token=wanted, update_mask=mask)).token)

    def revoke_token(self, token_id: str) -> TokenRecord:
        """Ends a token before its time."""
        return _token(self._stub.RevokeToken(pb2.RevokeTokenRequest(token_id=token_id)).token)

    def list_audit(self, *, actor: str = "", resource: str = "") -> Iterator[AuditRecord]:
        """Yields what was changed by whom, newest first.

        Args:
            actor: Only what this actor did; empty for all.
            resource: Only what was done to this resource, such as ``experiment 7``; empty for all.
        """
        request = pb2.ListAuditRowsRequest(
            actors=[actor] if actor else [], resources=[resource] if resource else []
        )
        for row in all_items(self._stub.ListAuditRows, request, "rows"):
            yield from_message(AuditRecord, row)

    def _user_id(self, user: str | int) -> int:
        return user if isinstance(user, int) else user_id(self._stub, user)


def _new_token(
    response: pb2.LoginResponse | pb2.LoginWithIdTokenResponse | pb2.CreateTokenResponse,
) -> NewToken:
    return NewToken(
        username=response.token.user_name,
        id=response.token.token_id,
        text=response.bearer_token,
        expire_time=datetime_field(response.token, "expire_time"),
    )


def _user(message: user_pb2.User) -> UserRecord:
    return from_message(UserRecord, message, id=message.user_id)


def _kind(number: token_pb2.TokenKind.ValueType) -> str:
    if number not in token_pb2.TokenKind.values():
        return "unknown"
    return token_pb2.TokenKind.Name(number).removeprefix("TOKEN_KIND_").lower().replace("_", "-")


def _token(message: token_pb2.Token) -> TokenRecord:
    return from_message(
        TokenRecord,
        message,
        id=message.token_id,
        username=message.user_name,
        kind=_kind(message.kind),
        parent_id=message.parent_token_id,
        service=message.service_name,
        read_only=message.scope == token_pb2.TOKEN_SCOPE_READ,
    )
