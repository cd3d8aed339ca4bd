"""Fetches public keys and revoked tokens, for services that run separately from the experiments service."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, cast

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from resolute.api.experiments.v1 import access_service_pb2
from resolute.api.experiments.v1.access_service_pb2_grpc import AccessServiceStub
from resolute.contracts.calls.tls import ClientTls, aio_channel
from resolute.contracts.clock import Clock
from resolute.errors import UnavailableError

if TYPE_CHECKING:
    from resolute.api.experiments.v1 import access_service_pb2_grpc

_REFETCH_SECONDS = 1.0
"""Between two questions for an unknown key: forged tokens ask no more often, however many there are."""
_REVOKED_SECONDS = 10.0
"""How often it asks which tokens were ended early: with the time of a call this stays below 30 s."""


class FetchedKeys:
    """Fetches the keys of the experiments service, and again if a token names an unknown one.

    Args:
        address: ``host:port`` of the experiments service.
        clock: Clock that limits the rate of requests, so that forged tokens cannot cause a flood of them.
        tls: TLS settings; None for a plain port.
    """

    def __init__(self, address: str, *, clock: Clock, tls: ClientTls | None = None) -> None:
        self._address = address
        self._tls = tls
        self._clock = clock
        self._known: dict[str, Ed25519PublicKey] = {}
        self._revoked: frozenset[str] = frozenset()
        self._fetched_at: float | None = None
        self._next: asyncio.Task[None] | None = None
        self._asked_at: float | None = None

    async def keys(self, *, missing: str = "") -> Mapping[str, Ed25519PublicKey]:
        """The keys by identifier.

        Raises:
            UnavailableError: The experiments service does not answer and no key is known.
        """
        if missing not in self._known:
            # Those that miss a key at the same time wait for one answer, which has it if it was there when
            # they asked: a key that was rotated just now is no forged one.
            if self._next is None or self._next.done():
                self._next = asyncio.create_task(self._fetch_soon(), name="fetch-keys")
            await asyncio.shield(self._next)
        return self._known

    async def revoked(self) -> Container[str]:
        """Identifiers of tokens that were ended before their time.

        While the experiments service does not answer, its last answer counts, so that an outage of that
        service does not stop the reports of trials.
        """
        if not self._within(self._asked_at, _REVOKED_SECONDS):
            # Noted before it asks: of many calls at the same time, one asks and the others continue.
            self._asked_at = self._clock.monotonic()
            with contextlib.suppress(UnavailableError):
                await self._fetch()
        return self._revoked

    async def _fetch_soon(self) -> None:
        if self._fetched_at is not None:
            await asyncio.sleep(self._fetched_at + _REFETCH_SECONDS - self._clock.monotonic())
        await self._fetch()

    def _within(self, moment: float | None, seconds: float) -> bool:
        return moment is not None and self._clock.monotonic() - moment < seconds

    async def _fetch(self) -> None:
        async with aio_channel(self._address, tls=self._tls, options=()) as channel:
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
        self._revoked = frozenset(response.revoked_token_ids)
        self._fetched_at = self._clock.monotonic()
