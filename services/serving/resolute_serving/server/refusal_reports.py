"""Sends the refusals of a service to the experiments service, which keeps the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, cast

import structlog

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1.access_service_pb2_grpc import AccessServiceStub
from resolute.contracts.times import to_timestamp
from resolute.errors import InvalidArgumentError, ResoluteError
from resolute_serving.auth.refusals import MOST_KINDS, CountedRefusal, Refusals
from resolute_serving.server.channels.peers import Peers

if TYPE_CHECKING:
    from resolute.api.experiments.v1.access_service_pb2_grpc import AccessServiceAsyncStub

_PAUSE_SECONDS = 10.0
_log = structlog.get_logger("audit")


class RefusalReports:
    """Sends refusals every ten seconds.

    Args:
        refusals: The refusals.
        peers: Channels to the other services.
        sleep: Waits for the next pass.
    """

    def __init__(
        self,
        refusals: Refusals,
        *,
        peers: Peers,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._refusals = refusals
        self._peers = peers
        self._sleep = sleep

    async def run(self) -> None:
        """Sends until it is cancelled."""
        while True:
            await self._sleep(_PAUSE_SECONDS)
            await self.send()

    async def send(self) -> None:
        """Sends what there is; what cannot be sent is kept for the next time."""
        taken = self._refusals.take()
        # Besides so many kinds there may be those that are counted together, and one message holds no more.
        for start in range(0, len(taken), MOST_KINDS):
            await self._send(taken[start : start + MOST_KINDS])

    async def _send(self, taken: Sequence[CountedRefusal]) -> None:
        stub = cast("AccessServiceAsyncStub", AccessServiceStub(self._peers.channel("experiments")))
        try:
            await stub.RecordRefusals(pb2.RecordRefusalsRequest(refusals=map(_message, taken)))
        except InvalidArgumentError as failure:
            # They would be refused again, together with all that come until then.
            _log.warning("refusals do not fit the audit log", refusals=taken, reason=str(failure))
        except ResoluteError:
            for counted in taken:
                self._refusals.add(counted)


def _message(counted: CountedRefusal) -> pb2.Refusal:
    refusal = counted.refusal
    return pb2.Refusal(
        time=to_timestamp(counted.time),
        actor=refusal.actor,
        user_id=refusal.user_id,
        action=refusal.action,
        resource=refusal.resource,
        peer=refusal.peer,
        count=counted.count,
    )
