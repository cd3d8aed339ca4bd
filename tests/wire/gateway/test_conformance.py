"""Every call gives the same answer, and the same error, through the gateway and by Python as without them."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from faults.fuzz.campaign import end_processes
from faults.fuzz.world import Caller, make_world
from support.calls.conformance import compare
from support.calls.ways import ByHttp, ByPython, Way
from support.services.gateway import gateway
from support.services.in_process import serving

from resolute_embedded.blueprints import BLUEPRINTS


@pytest.mark.timeout(300)
def test_every_call_ends_through_the_gateway_as_it_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")

    async def scenario() -> None:
        async with serving(BLUEPRINTS, tmp_path) as running, gateway(running.address) as http:
            caller = Caller(running)
            ways: dict[str, Way] = {
                "JSON": ByHttp(http, in_json=True),
                "binary": ByHttp(http, in_json=False),
                "Python": ByPython(running.address),
            }
            try:
                world = await make_world(caller, tmp_path, random.Random(1))
                comparison = await compare(caller, world, ways)
            finally:
                await caller.channel.close()
                end_processes(tmp_path)
        comparison.check(ways)

    asyncio.run(scenario())
