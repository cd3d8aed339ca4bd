"""The stream of all signals shows that it lives, whatever else happens meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clocks import ManualClock
from support.clusters.all_services import all_services

from resolute.api.experiments.v1 import allocations_service_pb2 as pb2
from resolute.api.experiments.v1 import allocations_service_pb2_grpc
from resolute_experiments.topics import SIGNAL_CHANGES


@pytest.mark.timeout(60)
def test_a_stream_that_is_woken_in_vain_still_shows_that_it_lives(tmp_path: Path) -> None:
    clock = ManualClock()

    async def body() -> None:
        async with all_services(tmp_path, clock=clock) as service:
            channel = service.running.channel(service.running.service_token("preemption"))
            stub: Any = allocations_service_pb2_grpc.AllocationsServiceStub(channel)
            responses = aiter(stub.FollowSignalChanges(pb2.FollowSignalChangesRequest()))
            assert (await anext(responses)).reset
            heard = asyncio.ensure_future(anext(responses))
            while not heard.done():
                clock.advance(1.0)
                service.service._core.notifier.notify(SIGNAL_CHANGES)
                await asyncio.sleep(0.01)
            assert not (await heard).reset
            await channel.close()

    asyncio.run(body())
