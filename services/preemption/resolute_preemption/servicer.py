"""Handler of the contract."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from resolute.api.preemption.v1.preemption_service_pb2 import WatchSignalsRequest, WatchSignalsResponse
from resolute.api.preemption.v1.preemption_service_pb2_grpc import PreemptionServiceServicer
from resolute_preemption.broadcaster import SignalBroadcaster, Subscription
from resolute_serving.validation import invalid

_MAX_SUBSCRIPTIONS = 500
_MAX_KEY_LENGTH = 200


class PreemptionServicer(PreemptionServiceServicer):
    """Serves ``PreemptionService``.

    Args:
        broadcaster: Has the signals.
    """

    def __init__(self, broadcaster: SignalBroadcaster) -> None:
        self._broadcaster = broadcaster

    async def WatchSignals(
        self, request: WatchSignalsRequest, context: Any
    ) -> AsyncIterator[WatchSignalsResponse]:
        """Sends the signals of some allocations, then each that changes."""
        signals = self._broadcaster.watch(_subscriptions(request))
        async with contextlib.aclosing(signals):
            async for news in signals:
                if news is None:
                    yield WatchSignalsResponse()
                else:
                    yield WatchSignalsResponse(key=news.key, signal=news.signal)


def _subscriptions(request: WatchSignalsRequest) -> list[Subscription]:
    if not 0 < len(request.subscriptions) <= _MAX_SUBSCRIPTIONS:
        raise invalid(
            "subscriptions",
            f"there are {len(request.subscriptions)} subscriptions; send 1 to {_MAX_SUBSCRIPTIONS}",
        )
    found: dict[str, Subscription] = {}
    for position, each in enumerate(request.subscriptions):
        field = f"subscriptions[{position}]"
        if not each.allocation_id:
            raise invalid(f"{field}.allocation_id", "allocation_id is empty; name the allocation to watch")
        if not 0 < len(each.key) <= _MAX_KEY_LENGTH:
            raise invalid(f"{field}.key", f"key must have 1 to {_MAX_KEY_LENGTH} characters")
        if each.key in found:
            raise invalid(f"{field}.key", f"key {each.key!r} is used twice; give each subscription its own")
        found[each.key] = Subscription(each.key, each.allocation_id, each.after_revision)
    return list(found.values())
