"""Users, tokens and the audit trail."""

from __future__ import annotations

from collections.abc import Iterator

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1 import access_service_pb2_grpc
from resolute.client.connection.paging import all_items
from resolute.client.connection.session import Session
from resolute.client.schema.accounts import AuditRecord, NewToken, TokenRecord, UserRecord, UserRole
from resolute.client.schema.convert import datetime_field
from resolute.contracts.values import from_value

_ROLES = {
    pb2.USER_ROLE_VIEWER: UserRole.VIEWER,
    pb2.USER_ROLE_EDITOR: UserRole.EDITOR,
    pb2.USER_ROLE_ADMIN: UserRole.ADMIN,
}
_NUMBERS = {role: number for number, role in _ROLES.items()}


class Access:
    """Calls of the access service.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._stub = session.stub(access_service_pb2_grpc.AccessServiceStub)

    def login(self, username: str, password: str) -> NewToken:
        """Gives a token in return for a password.

        Raises:
            UnauthenticatedError: Name or password are wrong.
            QuotaError: Too many attempts.
        """
        response = self._stub.Login(pb2.LoginRequest(username=username, password=password))
        return NewToken(id="", text=response.token, expire_time=datetime_field(response, "expire_time"))

    def create_user(self, name: str, role: UserRole) -> UserRecord:
        """Creates a user.

        Raises:
            AlreadyExistsError: The name is taken.
            InvalidArgumentError: It is no name.
        """
        return _user(self._stub.CreateUser(pb2.CreateUserRequest(name=name, role=_NUMBERS[role])).user)

    def list_users(self) -> Iterator[UserRecord]:
        """Yields all users by name."""
        for message in all_items(self._stub.ListUsers, pb2.ListUsersRequest(), "users"):
            yield _user(message)

    def update_user(
        self, name: str, *, role: UserRole | None = None, active: bool | None = None
    ) -> UserRecord:
        """Changes a user's role, or whether anybody may act as it; None leaves a thing as it is.

        Raises:
            NotFoundError: There is none of this name.
            FailedPreconditionError: Nobody would be an admin any more.
        """
        request = pb2.UpdateUserRequest(name=name)
        if role is not None:
            request.role = _NUMBERS[role]
        if active is not None:
            request.active = active
        return _user(self._stub.UpdateUser(request).user)

    def set_password(self, name: str, password: str) -> None:
        """Sets a password, and ends all tokens of the user."""
        self._stub.SetPassword(pb2.SetPasswordRequest(username=name, password=password))

    def create_token(self, username: str = "", *, ttl_seconds: int = 0, description: str = "") -> NewToken:
        """Issues a token.

        Args:
            username: Whom it speaks for; empty for the caller.
            ttl_seconds: How long it is valid; zero for 30 days.
            description: What it is for.
        """
        response = self._stub.CreateToken(
            pb2.CreateTokenRequest(username=username, ttl_seconds=ttl_seconds, description=description)
        )
        expires = datetime_field(response, "expire_time")
        return NewToken(id=response.token_id, text=response.token, expire_time=expires)

    def list_tokens(self, username: str = "") -> Iterator[TokenRecord]:
        """Yields tokens that have not expired, newest first; all that the caller may see without a name."""
        request = pb2.ListTokensRequest(username=username)
        for message in all_items(self._stub.ListTokens, request, "tokens"):
            yield _token(message)

    def revoke_token(self, token_id: str) -> TokenRecord:
        """Ends a token before its time."""
        return _token(self._stub.RevokeToken(pb2.RevokeTokenRequest(token_id=token_id)).token)

    def list_audit(self, *, actor: str = "", resource: str = "") -> Iterator[AuditRecord]:
        """Yields what was changed by whom, newest first.

        Args:
            actor: Only what this actor did; empty for all.
            resource: Only what was done to this resource, such as ``experiment 7``; empty for all.
        """
        request = pb2.ListAuditRowsRequest(actor=actor, resource=resource)
        for row in all_items(self._stub.ListAuditRows, request, "rows"):
            yield AuditRecord(
                time=datetime_field(row, "time"),
                actor=row.actor,
                action=row.action,
                resource=row.resource,
                detail=from_value(row.detail),
            )


def _user(message: pb2.UserAccount) -> UserRecord:
    return UserRecord(
        name=message.name,
        role=_ROLES[message.role],
        active=message.active,
        has_password=message.has_password,
        create_time=datetime_field(message, "create_time"),
    )


def _token(message: pb2.TokenRecord) -> TokenRecord:
    return TokenRecord(
        id=message.token_id,
        username=message.username,
        description=message.description,
        create_time=datetime_field(message, "create_time"),
        expire_time=datetime_field(message, "expire_time"),
        revoked=message.revoked,
    )
