"""The calls of AccessService that sign browsers in and out."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1 import access_service_pb2_grpc
from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PermissionDeniedError,
    QuotaError,
    ResoluteError,
    UnauthenticatedError,
    UnavailableError,
)
from resolute_gateway.backends import Backends
from resolute_gateway.web.callers import current_caller

_REDEEM = "/resolute.api.experiments.v1.AccessService/RedeemSignInCode"
_SECONDS = 10.0
_PROVIDER_SECONDS = 30.0
"""The service may ask the provider for its keys."""
_LONGEST_SESSION = 7 * 86_400
"""Seconds that a browser keeps a session, whatever its token allows: browsers are left open, and lent."""
_SILENT = "the service that knows the users does not answer; try again"
_REFUSALS: Mapping[grpc.StatusCode, type[ResoluteError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: QuotaError,
}


@dataclass(frozen=True)
class Session:
    """A signed-in browser session."""

    token: str
    expires_at: int
    """Unix time."""
    device_token: str = ""
    """Keeps others who try passwords from locking the user out of this browser; empty without a password."""

    @property
    def seconds(self) -> int:
        """How long a browser keeps it from now."""
        return min(max(0, self.expires_at - int(time.time())), _LONGEST_SESSION)


@dataclass(frozen=True)
class OpenIdProvider:
    """An OpenID provider, and the cluster's registration with it."""

    issuer: str
    client_id: str
    scopes: Sequence[str]


class AccessCalls:
    """Makes the calls.

    Args:
        backends: The services.
    """

    def __init__(self, backends: Backends) -> None:
        self._channel = backends.channel(_REDEEM)
        self._peers = backends.peers

    async def redeem(self, code: str) -> Session:
        """Returns a session for a one-time code.

        Raises:
            UnauthenticatedError: It is not valid.
            UnavailableError: The service could not be reached.
        """
        request = pb2.RedeemSignInCodeRequest(code=code)
        response = await self._signed_in(self._stub().RedeemSignInCode, request, seconds=_SECONDS)
        return Session(response.bearer_token, response.token.expire_time.seconds)

    async def login(self, name: str, password: str, *, device_token: str) -> Session:
        """Returns a session for a name and a password.

        Args:
            name: Name of the user.
            password: The password.
            device_token: That of an earlier session of this browser; empty for none.

        Raises:
            UnauthenticatedError: They are wrong.
            QuotaError: There were too many attempts.
            UnavailableError: The service could not be reached.
        """
        request = pb2.LoginRequest(user_name=name, password=password, device_token=device_token)
        response = await self._signed_in(self._stub().Login, request, seconds=_SECONDS)
        return Session(response.bearer_token, response.token.expire_time.seconds, response.device_token)

    async def openid_provider(self) -> OpenIdProvider | None:
        """Returns the provider that signs people in; None if the cluster has none.

        Raises:
            UnavailableError: The service could not be reached.
        """
        try:
            response = await self._stub().GetSignInMethods(pb2.GetSignInMethodsRequest(), timeout=_SECONDS)
        except grpc.aio.AioRpcError as failure:
            raise UnavailableError(_SILENT) from failure
        if not response.HasField("openid_provider"):
            return None
        provider = response.openid_provider
        return OpenIdProvider(provider.issuer, provider.client_id, tuple(provider.scopes))

    async def login_with_id_token(self, id_token: str, *, nonce: str) -> Session:
        """Returns a session for an ID token.

        Args:
            id_token: The token.
            nonce: What it must carry.

        Raises:
            UnauthenticatedError: It is not accepted.
            PermissionDeniedError: Whom it names may not sign in.
            FailedPreconditionError: The cluster has no provider, or would lose its last admin.
            QuotaError: There were too many attempts.
            UnavailableError: The service could not be reached.
        """
        request = pb2.LoginWithIdTokenRequest(id_token=id_token, nonce=nonce)
        response = await self._signed_in(self._stub().LoginWithIdToken, request, seconds=_PROVIDER_SECONDS)
        return Session(response.bearer_token, response.token.expire_time.seconds)

    async def revoke(self, token: str) -> None:
        """Revokes the token of a session, if it is still valid.

        Raises:
            grpc.aio.AioRpcError: The service could not be reached.
            UnavailableError: The gateway has no address of the service.
        """
        request = pb2.RevokeTokenRequest(token_id=_token_id(token))
        metadata = (("authorization", f"Bearer {token}"),)
        try:
            await self._stub().RevokeToken(request, metadata=metadata, timeout=_SECONDS)
        except grpc.aio.AioRpcError as failure:
            if failure.code() not in {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.NOT_FOUND}:
                raise

    async def _signed_in(self, call: Any, request: Any, *, seconds: float) -> Any:
        """Makes a call that signs in, which the service limits and records by the address of the browser."""
        try:
            return await call(request, metadata=self._peers.metadata(current_caller.get()), timeout=seconds)
        except grpc.aio.AioRpcError as failure:
            refusal = _REFUSALS.get(failure.code())
            if refusal is not None:
                raise refusal(failure.details() or "the service gave no reason") from failure
            raise UnavailableError(_SILENT) from failure

    def _stub(self) -> Any:
        if self._channel is None:
            raise UnavailableError("the gateway cannot sign in: set RESOLUTE_EXPERIMENTS_ADDRESS")
        # One class serves both kinds of channels.
        return access_service_pb2_grpc.AccessServiceStub(self._channel)


def _token_id(token: str) -> str:
    """The id of a token, which the service verifies."""
    claims = token.split(".")[1:2]
    try:
        decoded = base64.urlsafe_b64decode(claims[0] + "===") if claims else b"{}"
        return str(json.loads(decoded).get("jti", ""))
    except (ValueError, AttributeError):
        return ""
