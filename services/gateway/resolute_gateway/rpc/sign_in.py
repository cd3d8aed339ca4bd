"""Refuses unauthenticated callers early.

Services check tokens too, but only after a message was converted from JSON, which takes seconds of processor
time for a large message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import grpc
import jwt

from resolute.api.experiments.v1.access_service_pb2 import GetCurrentUserResponse
from resolute.errors import UnavailableError
from resolute_gateway.backends import Backends
from resolute_gateway.web.callers import current_caller
from resolute_serving.auth.policy.permissions import PERMISSIONS
from resolute_serving.auth.refusals import client_address

Metadata = list[tuple[str, str]]
_CURRENT_USER = "/resolute.api.experiments.v1.AccessService/GetCurrentUser"
_SECONDS = 10.0


def claimed_caller(metadata: Iterable[tuple[str, str]]) -> str:
    """Names who makes a call whose token a service checks: whom it says it speaks for, or else the address.

    Args:
        metadata: What the caller sends with the call.
    """
    token = dict(metadata).get("authorization", "").partition(" ")[2]
    try:
        return str(jwt.decode(token, options={"verify_signature": False})["sub"])
    except (jwt.PyJWTError, KeyError):
        return client_address(current_caller.get())


class SignInCheck:
    """Asks the experiments service whether a token is accepted.

    Args:
        backends: The services.
    """

    def __init__(self, backends: Backends) -> None:
        channel = backends.channel(_CURRENT_USER)
        self._call: Any = None if channel is None else channel.unary_unary(_CURRENT_USER)

    async def check(self, path: str, metadata: Metadata) -> str:
        """Names the caller, who is signed in or need not be.

        Args:
            path: The name of the call.
            metadata: What the caller sends with it.

        Returns:
            The name of the user or service; of others their address.

        Raises:
            grpc.aio.AioRpcError: The token is not accepted, or the service could not be reached.
            UnavailableError: The gateway has no address of the service that knows the users.
        """
        address = client_address(current_caller.get())
        if PERMISSIONS[path].public:
            return address
        if self._call is None:
            raise UnavailableError("the gateway cannot check tokens: set RESOLUTE_EXPERIMENTS_ADDRESS")
        try:
            answer = await self._call(b"", metadata=metadata, timeout=_SECONDS)
        except grpc.aio.AioRpcError as failure:
            # Trials and services are no users, but signed in.
            if failure.code() is not grpc.StatusCode.PERMISSION_DENIED:
                raise
            return address
        caller = GetCurrentUserResponse.FromString(answer)
        return caller.user.name or caller.service_name or address
