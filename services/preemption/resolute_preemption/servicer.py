"""The gRPC handler of the preemption service."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from resolute.api.preemption.v1.preemption_service_pb2 import WatchSignalsRequest, WatchSignalsResponse
from resolute.api.preemption.v1.preemption_service_pb2_grpc import PreemptionServiceServicer
from resolute_preemption.latest_signals import LatestSignals, Subscription
from resolute_serving.subscriptions import check_keys
from resolute_serving.validation import invalid


class PreemptionServicer(PreemptionServiceServicer):
    """Serves ``PreemptionService``.

    Args:
        signals: The last signal of every allocation.
    """

    def __init__(self, signals: LatestSignals) -> None:
        self._signals = signals

    async def WatchSignals(
        self, request: WatchSignalsRequest, context: Any
    ) -> AsyncIterator[WatchSignalsResponse]:
        """Sends the signals of some allocations, then each change."""
        signals = self._signals.watch(_subscriptions(request))
        async with contextlib.aclosing(signals):
            async for news in signals:
                if news is None:
                    yield WatchSignalsResponse()
                else:
                    yield WatchSignalsResponse(key=news.key, signal=news.signal)


def _subscriptions(request: WatchSignalsRequest) -> list[Subscription]:
    check_keys(request.subscriptions)
    for position, each in enumerate(request.subscriptions):
        if not each.allocation_id:
            field = f"subscriptions[{position}].allocation_id"
            raise invalid(field, "allocation_id is empty; name the allocation to watch")
    return [Subscription(each.key, each.allocation_id, each.after_revision) for each in request.subscriptions]
