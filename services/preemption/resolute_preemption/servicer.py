"""Handler of the contract."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from resolute.api.preemption.v1.preemption_service_pb2 import WatchSignalRequest, WatchSignalResponse
from resolute.api.preemption.v1.preemption_service_pb2_grpc import PreemptionServiceServicer
from resolute.errors import InvalidArgumentError, Violation
from resolute_preemption.broadcaster import SignalBroadcaster


class PreemptionServicer(PreemptionServiceServicer):
    """Serves ``PreemptionService``.

    Args:
        broadcaster: Has the signals.
    """

    def __init__(self, broadcaster: SignalBroadcaster) -> None:
        self._broadcaster = broadcaster

    async def WatchSignal(
        self, request: WatchSignalRequest, context: Any
    ) -> AsyncIterator[WatchSignalResponse]:
        """Sends the signal of an allocation, then every change."""
        if not request.allocation_id:
            message = "allocation_id is empty; name the allocation to watch"
            raise InvalidArgumentError(message, violations=[Violation("allocation_id", message)])
        signals = self._broadcaster.watch(request.allocation_id, after_revision=request.after_revision)
        async with contextlib.aclosing(signals):
            async for signal in signals:
                yield WatchSignalResponse(signal=signal)
