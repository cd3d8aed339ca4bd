"""The calls of AccessService that sign browsers in and out."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

import grpc

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1 import access_service_pb2_grpc
from resolute.errors import UnavailableError
from resolute_gateway.backends import Backends

_REDEEM = "/resolute.api.experiments.v1.AccessService/RedeemSignInCode"
_SECONDS = 10.0


@dataclass(frozen=True)
class Session:
    """A browser that was signed in."""

    token: str
    expires_at: int
    """Unix time."""


class AccessCalls:
    """Makes the calls.

    Args:
        backends: The services.
    """

    def __init__(self, backends: Backends) -> None:
        self._channel = backends.channel(_REDEEM)

    async def redeem(self, code: str) -> Session | None:
        """Returns a session for a one-time code; None if the code is not valid.

        Raises:
            grpc.aio.AioRpcError: Nobody could be asked.
            UnavailableError: The gateway has no address of the service.
        """
        request = pb2.RedeemSignInCodeRequest(code=code)
        try:
            response = await self._stub().RedeemSignInCode(request, timeout=_SECONDS)
        except grpc.aio.AioRpcError as failure:
            if failure.code() is grpc.StatusCode.UNAUTHENTICATED:
                return None
            raise
        return Session(response.bearer_token, response.token.expire_time.seconds)

    async def revoke(self, token: str) -> None:
        """Revokes the token of a session, if it is still valid.

        Raises:
            grpc.aio.AioRpcError: Nobody could be asked.
            UnavailableError: The gateway has no address of the service.
        """
        request = pb2.RevokeTokenRequest(token_id=_token_id(token))
        metadata = (("authorization", f"Bearer {token}"),)
        try:
            await self._stub().RevokeToken(request, metadata=metadata, timeout=_SECONDS)
        except grpc.aio.AioRpcError as failure:
            if failure.code() not in {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.NOT_FOUND}:
                raise

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
