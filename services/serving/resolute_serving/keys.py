"""Public keys fetched from the experiments service, by services that run apart from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from resolute.api.experiments.v1 import access_service_pb2
from resolute.api.experiments.v1.access_service_pb2_grpc import AccessServiceStub
from resolute.clock import Clock
from resolute.errors import UnavailableError

if TYPE_CHECKING:
    from resolute.api.experiments.v1 import access_service_pb2_grpc

_REFETCH_SECONDS = 10.0


class FetchedKeys:
    """Asks the experiments service for its keys, and again when an unknown one turns up.

    Args:
        address: ``host:port`` of the experiments service.
        clock: Bounds how often it asks, so that forged tokens cannot make it flood.
    """

    def __init__(self, address: str, *, clock: Clock) -> None:
        self._address = address
        self._clock = clock
        self._known: dict[str, Ed25519PublicKey] = {}
        self._fetched_at: float | None = None

    async def keys(self, *, missing: str = "") -> Mapping[str, Ed25519PublicKey]:
        """The keys by identifier.

        Raises:
            UnavailableError: The experiments service does not answer and no key is known.
        """
        recently = (
            self._fetched_at is not None and self._clock.monotonic() - self._fetched_at < _REFETCH_SECONDS
        )
        if missing not in self._known and not recently:
            await self._fetch()
        return self._known

    async def _fetch(self) -> None:
        async with grpc.aio.insecure_channel(self._address) as channel:
            stub = cast("access_service_pb2_grpc.AccessServiceAsyncStub", AccessServiceStub(channel))
            try:
                response = await stub.GetVerificationKeys(
                    access_service_pb2.GetVerificationKeysRequest(), timeout=5
                )
            except grpc.aio.AioRpcError as error:
                raise UnavailableError(
                    f"the keys cannot be fetched from {self._address}; try again"
                ) from error
        self._known = {
            key.key_id: Ed25519PublicKey.from_public_bytes(key.public_key) for key in response.keys
        }
        self._fetched_at = self._clock.monotonic()
