"""Refuses strangers before work is done for them.

Services check tokens. They do it after a message was converted from JSON, and for a large message that takes
seconds of one processor.
"""

from __future__ import annotations

from typing import Any

import grpc

from resolute.errors import UnavailableError
from resolute_gateway.backends import Backends
from resolute_serving.auth.policy.permissions import PERMISSIONS

Metadata = list[tuple[str, str]]
_CURRENT_USER = "/resolute.api.experiments.v1.AccessService/GetCurrentUser"
_SECONDS = 10.0


class SignInCheck:
    """Asks the service that knows the users whether a token is accepted.

    Args:
        backends: The services.
    """

    def __init__(self, backends: Backends) -> None:
        channel = backends.channel(_CURRENT_USER)
        self._call: Any = None if channel is None else channel.unary_unary(_CURRENT_USER)

    async def check(self, path: str, metadata: Metadata) -> None:
        """Returns if whoever makes a call is signed in, or need not be.

        Args:
            path: The name of the call.
            metadata: What the caller sends with it.

        Raises:
            grpc.aio.AioRpcError: The token is not accepted, or nobody could be asked.
            UnavailableError: The gateway has no address of the service that knows the users.
        """
        if PERMISSIONS[path].public:
            return
        if self._call is None:
            raise UnavailableError("the gateway cannot check tokens: set RESOLUTE_EXPERIMENTS_ADDRESS")
        try:
            await self._call(b"", metadata=metadata, timeout=_SECONDS)
        except grpc.aio.AioRpcError as failure:
            # Trials and services are no users, but signed in.
            if failure.code() is not grpc.StatusCode.PERMISSION_DENIED:
                raise
