"""A connection to one cluster on behalf of one user."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TypeVar, final

import grpc

from resolute.api.experiments.v1 import access_service_pb2, access_service_pb2_grpc
from resolute.client.connection import credentials
from resolute.client.connection.endpoint import PASSWORD_VARIABLE, Endpoint, find_endpoint, named_user
from resolute.client.connection.user_ids import user_id
from resolute.contracts.times import to_duration
from resolute.errors import InvalidArgumentError, UnauthenticatedError
from resolute.rpc.channel import TokenSource, open_channel

StubT = TypeVar("StubT")
_ACTING_SECONDS = 86_400


@final
class Session:
    """The channel to a cluster, which opens at its first use, and its stubs. Threads may share a session.

    Args:
        endpoint: The cluster.
        user: Name of the user to act as; empty for the user of the endpoint's token.
        password: Password of this user, which may be empty; None to request a token of this user with the
            endpoint's token.

    Raises:
        InvalidArgumentError: A password is given without a user.
    """

    def __init__(self, endpoint: Endpoint, *, user: str = "", password: str | None = None) -> None:
        if password is not None and not user:
            raise InvalidArgumentError("a password is given and no user; name the user too")
        self.endpoint = endpoint
        self.user = user
        self._password = password
        self._lock = threading.Lock()
        self._channels: list[grpc.Channel] = []
        self._channel: grpc.Channel | None = None
        self._closed = False

    @classmethod
    def find(
        cls,
        master: str = "",
        *,
        user: str = "",
        password: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Session:
        """Makes a session with the cluster that ``find_endpoint`` finds.

        Args:
            master: The cluster's address; empty to look in the environment and the home.
            user: Act as this user; empty for the one that DET_USER names, see ``named_user``.
            password: Lets this user in, and may be empty; None for DET_PASS if that is of this user, else to
                ask for the user's token with the endpoint's own.
            environment: Environment variables; None for this process's own.

        Raises:
            FailedPreconditionError: No cluster is named anywhere.
            InvalidArgumentError: The address is not one, or a password is given and no user.
        """
        known = os.environ if environment is None else environment
        endpoint = find_endpoint(master, environment=known)
        named, its_password = named_user(known)
        user = user or named
        if password is None and user == named:
            password = its_password
        return cls(endpoint, user=user, password=password)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def stub(self, make: Callable[[grpc.Channel], StubT]) -> StubT:
        """Makes a stub of a service on this session's channel.

        Args:
            make: The generated stub class.
        """
        return make(self._open())

    def close(self) -> None:
        """Closes the channel: calls raise ClosedConnectionError from then on, the first one too."""
        with self._lock:
            self._closed = True
            channels, self._channels = self._channels, []
        for channel in channels:
            channel.close()

    def _open(self) -> grpc.Channel:
        with self._lock:
            if self._channel is None:
                token = self.endpoint.token
                if self.user:
                    # Anyone who has a password needs no other token, and an old one must not be in the way.
                    asking = self._connect(token if self._password is None else _no_token)
                    token = _UserTokenSource(
                        self.user, self._password, asking, device_token=self._device_token()
                    )
                self._channel = self._connect(token)
            return self._channel

    @property
    def by_password(self) -> bool:
        """Whether a password lets the user in, rather than the endpoint's token."""
        return self._password is not None

    def _device_token(self) -> str:
        return credentials.read(credentials.device_file(self.endpoint.credential_file, self.user))

    def _connect(self, token: TokenSource) -> grpc.Channel:
        channel = open_channel(self.endpoint.address, token=token, tls=self.endpoint.tls)
        if self._closed:
            channel.close()
        else:
            self._channels.append(channel)
        return channel


def _no_token() -> str:
    return ""


class _UserTokenSource:
    """Requests another user's token once, when the first call needs it."""

    def __init__(self, user: str, password: str | None, channel: grpc.Channel, *, device_token: str) -> None:
        self._user = user
        self._password = password
        self._device_token = device_token
        self._access = access_service_pb2_grpc.AccessServiceStub(channel)
        self._lock = threading.Lock()
        self._token = ""

    def __call__(self) -> str:
        with self._lock:
            if not self._token:
                self._token = self._ask() if self._password is None else self._log_in(self._password)
            return self._token

    def _log_in(self, password: str) -> str:
        request = access_service_pb2.LoginRequest(
            user_name=self._user, password=password, device_token=self._device_token
        )
        try:
            return self._access.Login(request).bearer_token
        except UnauthenticatedError as error:
            blank = "" if password else "empty "
            raise UnauthenticatedError(
                f"the {blank}password given for user {self._user}, as in {PASSWORD_VARIABLE}, "
                f"is not accepted: {error}"
            ) from error

    def _ask(self) -> str:
        request = access_service_pb2.CreateTokenRequest(
            request_id=str(uuid.uuid4()),
            user_id=user_id(self._access, self._user),
            ttl=to_duration(_ACTING_SECONDS),
            description="acting as another user",
        )
        return self._access.CreateToken(request).bearer_token
