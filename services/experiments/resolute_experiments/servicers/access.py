"""Handlers of AccessService."""

from __future__ import annotations

from typing import Any

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1 import access_service_pb2_grpc
from resolute.errors import InvalidArgumentError, PermissionDeniedError
from resolute_experiments.core import Core
from resolute_experiments.messages import timestamp
from resolute_experiments.store import access
from resolute_serving.context import ServiceAccount, User, current_principal
from resolute_serving.tokens import TokenSigner, public_bytes

_DEFAULT_TTL = 30 * 86_400
_LONGEST_TTL = 365 * 86_400


class AccessServicer(access_service_pb2_grpc.AccessServiceServicer):
    """Users and tokens.

    Args:
        core: What all handlers of this service share.
        signer: Issues tokens.
    """

    def __init__(self, core: Core, signer: TokenSigner) -> None:
        self._core = core
        self._signer = signer

    async def GetVerificationKeys(
        self, request: pb2.GetVerificationKeysRequest, context: Any
    ) -> pb2.GetVerificationKeysResponse:
        """Gives the keys that verify this cluster's tokens."""
        key = pb2.VerificationKey(
            key_id=self._signer.key_id, public_key=public_bytes(self._signer.public_key)
        )
        return pb2.GetVerificationKeysResponse(keys=[key])

    async def CreateToken(self, request: pb2.CreateTokenRequest, context: Any) -> pb2.CreateTokenResponse:
        """Issues a token for a user."""
        if not 0 <= request.ttl_seconds <= _LONGEST_TTL:
            raise InvalidArgumentError(
                f"ttl_seconds is {request.ttl_seconds}; it must be between 0 and {_LONGEST_TTL}"
            )
        now = self._core.clock.time()
        user = await self._core.database.read(lambda c: access.get_user(c, request.username))
        ttl = request.ttl_seconds or _DEFAULT_TTL
        await self._core.database.write(
            lambda c: access.record(c, "create_token", f"user {user.name}", now=now, ttl=ttl)
        )
        return pb2.CreateTokenResponse(
            token=self._signer.user(user, ttl=ttl), expire_time=timestamp(now + ttl)
        )

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
