"""Followers of trials lose nothing and see nothing twice, though the gateway is killed in mid-stream.

The number of kills is small here; `make gateway-kills` kills it 20 times.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from pathlib import Path
from typing import Any

import grpc
import pytest
from faults.fuzz.world import Caller
from support.services.gateway import need_http
from support.services.in_process import Running, serving
from support.services.logs import columns, line
from support.services.processes.gateway import GatewayProcess

from resolute.api.gateway.v1 import gateway_service_pb2 as api
from resolute.contracts.calls.tls import aio_channel
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_serving.context import TrialRun

KILLS = int(os.environ.get("RESOLUTE_GATEWAY_KILLS", "2"))
WATCH = "/resolute.api.gateway.v1.GatewayService/Watch"
TRIALS = 3
FOLLOWERS = 2
BETWEEN_KILLS = 5
"""Lines of each trial that every follower has seen of a gateway before it is killed."""


class Follower:
    """Follows the logs of all trials by one stream, and goes on from its cursors after each break."""

    def __init__(self, gateway: GatewayProcess, token: str, trials: list[str]) -> None:
        self._gateway = gateway
        self._token = token
        self._cursors = dict.fromkeys(trials, 0)
        self.seen: dict[str, list[str]] = {trial: [] for trial in trials}
        self.breaks = 0
        self.progress = asyncio.Condition()

    async def follow(self) -> None:
        """Follows until it is cancelled."""
        while True:
            try:
                async with aio_channel(self._gateway.address, tls=None, options=()) as channel:
                    await self._read(channel)
            except grpc.aio.AioRpcError as failure:
                if failure.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                self.breaks += 1
                await asyncio.sleep(0.05)  # until the next gateway listens

    async def reached(self, count: int) -> None:
        """Waits until so many lines of each trial have come."""
        async with self.progress:
            await self.progress.wait_for(lambda: all(len(lines) >= count for lines in self.seen.values()))

    async def _read(self, channel: grpc.aio.Channel) -> None:
        request = api.WatchRequest()
        for trial, cursor in self._cursors.items():
            wanted = request.lines.subscriptions.add(key=trial, after_line_id=cursor)
            wanted.filter.trial_id = trial
        call: Any = channel.unary_stream(
            WATCH,
            request_serializer=api.WatchRequest.SerializeToString,
            response_deserializer=api.WatchResponse.FromString,
        )
        async for response in call(request, metadata=[("authorization", f"Bearer {self._token}")]):
            if response.WhichOneof("event") == "lines":
                got = response.lines
                self.seen[got.key] += [one.message for one in got.lines]
                self._cursors[got.key] = got.cursor
                async with self.progress:
                    self.progress.notify_all()


async def write(running: Running, runs: list[TrialRun]) -> None:
    """Writes a line of each trial after the other, until it is cancelled."""
    caller = Caller(running)
    tokens = [running.trial_token(one) for one in runs]
    number = 0
    try:
        while True:
            for one, token in zip(runs, tokens, strict=True):
                await caller.call(
                    "IngestLines",
                    token=token,
                    trial_id=one.trial_id,
                    run=1,
                    source="s",
                    experiment_id=one.experiment_id,
                    first_sequence=number,
                    lines=columns([line(str(number))]),
                )
            number += 1
            await asyncio.sleep(0.02)  # as a trial that prints
    finally:
        await caller.channel.close()


@pytest.mark.timeout(900)
def test_nothing_is_lost_or_comes_twice_though_the_gateway_is_killed(tmp_path: Path) -> None:
    need_http()
    runs = [TrialRun(str(uuid.uuid4()), 1, str(uuid.uuid4()), "a", "w") for _ in range(TRIALS)]
    trials = [one.trial_id for one in runs]

    async def scenario() -> None:
        async with serving(BLUEPRINTS, tmp_path) as running:
            gateway = GatewayProcess(running.address)
            await asyncio.to_thread(gateway.start)
            followers = [Follower(gateway, running.user_token(), trials) for _ in range(FOLLOWERS)]
            tasks = [asyncio.create_task(one.follow()) for one in followers]
            writer = asyncio.create_task(write(running, runs))
            try:
                for _ in range(KILLS):
                    before = max(len(lines) for one in followers for lines in one.seen.values())
                    await asyncio.gather(*(one.reached(before + BETWEEN_KILLS) for one in followers))
                    await asyncio.to_thread(gateway.kill)
                    await asyncio.to_thread(gateway.start)
                before = max(len(lines) for one in followers for lines in one.seen.values())
                await asyncio.gather(*(one.reached(before + BETWEEN_KILLS) for one in followers))
            finally:
                for task in (writer, *tasks):
                    task.cancel()
                await asyncio.gather(writer, *tasks, return_exceptions=True)
                await asyncio.to_thread(gateway.kill)
        for one in followers:
            assert one.breaks >= KILLS
            for lines in one.seen.values():
                assert lines == [str(number) for number in range(len(lines))]

    asyncio.run(scenario())
