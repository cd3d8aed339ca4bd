"""Renews the token file of a service that runs separately."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import jwt
import structlog

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1.access_service_pb2_grpc import AccessServiceStub
from resolute.contracts.clock import SYSTEM_CLOCK, Clock, DueTime
from resolute.contracts.files.atomic_files import write_atomically
from resolute.errors import ResoluteError
from resolute_serving.server.channels.peers import Peers

if TYPE_CHECKING:
    from resolute.api.experiments.v1.access_service_pb2_grpc import AccessServiceAsyncStub

_LOOK_SECONDS = 10.0
"""Between two looks at the file and the clocks, and between two attempts."""
_KEY_SECONDS = 60.0
"""Between two questions whether the cluster has rotated its key."""
_log = structlog.get_logger("tokens")


class TokenFile:
    """Reads this service's token from a file at every call, so that the file can be replaced at any time.

    Args:
        path: The file; None for a service without a token.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def __call__(self) -> str:
        """The token; empty without a file."""
        return self._path.read_text(encoding="utf-8-sig").strip() if self._path else ""


class TokenRenewal:
    """Renews a token after half of its lifetime, and when the signing key changes: the old key may go.

    Args:
        path: The file with the token.
        peers: Channels to the other services, with that token.
        clock: Clock for the renewal.
        sleep: Waits for the next check.
    """

    def __init__(
        self,
        path: Path,
        *,
        peers: Peers,
        clock: Clock = SYSTEM_CLOCK,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._path = path
        self._peers = peers
        self._clock = clock
        self._sleep = sleep
        self._due = DueTime(clock)
        self._key_look = DueTime(clock)
        self._known = ""
        self._failed = False

    async def run(self) -> None:
        """Renews until it is cancelled."""
        while True:
            await self.look()
            await self._sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Renews the token if it is due; what fails is tried again at the next look."""
        try:
            text = TokenFile(self._path)()
            if text != self._known:
                self._known = text
                self._due.set(max(_middle_of_life(text) - self._clock.time(), 0.0))
            stub = cast("AccessServiceAsyncStub", AccessServiceStub(self._peers.channel("experiments")))
            if self._due.reached or await self._has_an_old_key(stub):
                response = await stub.RenewServiceToken(pb2.RenewServiceTokenRequest())
                write_atomically(self._path, f"{response.bearer_token}\n", mode=0o600, sync=True)
        except (ResoluteError, OSError, jwt.InvalidTokenError) as failure:
            # Once an outage: it is tried again every few seconds.
            (_log.debug if self._failed else _log.warning)(
                "the token of this service cannot be renewed", file=str(self._path), reason=str(failure)
            )
            self._failed = True
        else:
            self._failed = False

    async def _has_an_old_key(self, stub: AccessServiceAsyncStub) -> bool:
        if not self._key_look.reached:
            return False
        response = await stub.GetVerificationKeys(pb2.GetVerificationKeysRequest())
        self._key_look.set(_KEY_SECONDS)
        return response.keys[0].key_id != jwt.get_unverified_header(self._known).get("kid")


def _middle_of_life(token: str) -> float:
    """The time in the middle between the issue of a token and its expiry."""
    claims = jwt.decode(token, options={"verify_signature": False})
    return (float(claims["iat"]) + float(claims["exp"])) / 2
