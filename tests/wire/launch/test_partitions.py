"""Connections whose other end is gone without a word, and what a supervisor makes of one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clusters.control_plane import control_plane
from support.clusters.supervisors import supervised
from support.daemons.silent_proxy import silent_proxy
from support.services.in_process import serving
from support.services.stand_ins.signal_source import SignalSource
from support.waiting import wait_until_async

from resolute.api.preemption.v1.preemption_service_pb2 import SignalSubscription, WatchSignalsRequest
from resolute.api.preemption.v1.preemption_service_pb2_grpc import PreemptionServiceStub
from resolute.contracts.calls.keepalive import KEEPALIVE_SECONDS, KEEPALIVE_TIMEOUT_SECONDS
from resolute.errors import ResoluteError, UnavailableError
from resolute.rpc.channel import open_channel
from resolute_preemption.service import PreemptionService
from resolute_preemption.settings import PreemptionSettings
from resolute_serving.server.channels.peers import Peers
from resolute_serving.server.service import Blueprint

# The promise is 15 s; the rest is for a machine that has other things to do.
FOUND_SECONDS = 30.0
REQUEST = WatchSignalsRequest(subscriptions=[SignalSubscription(key="a", allocation_id="a")])
QUIET = PreemptionSettings(heartbeat=3600.0, silence_timeout=3600.0)
TRAINING = """
import time
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.shared_memory.flags import Flags
flags = Flags(RunDirectory.from_environment().flags_file)
print("training", flush=True)
while not flags.preempt:
    time.sleep(0.01)
flags.acknowledge()
"""


def blueprint() -> Blueprint:
    return Blueprint(name="preemption", package="", create=lambda env: PreemptionService(env, settings=QUIET))


def test_the_promise_is_15_seconds() -> None:
    assert KEEPALIVE_SECONDS + KEEPALIVE_TIMEOUT_SECONDS <= 15


@pytest.mark.integration
def test_both_ends_of_silent_connections_find_out_and_a_pause_reaches_the_next_one(tmp_path: Path) -> None:
    asyncio.run(partitions(tmp_path))


async def partitions(tmp_path: Path) -> None:
    source = SignalSource()
    await source.start()
    files = {"t.py": TRAINING}
    try:
        async with serving([blueprint()], tmp_path, addresses={"experiments": source.address}) as running:
            with (
                control_plane(["python3", "t.py"], files=files, lease_ttl=1.0) as plane,
                silent_proxy(running.address) as services,
                silent_proxy(plane.address) as supervisors,
                supervised(tmp_path, plane, master=supervisors.address) as run,
                open_channel(services.address, token=running.user_token) as channel,
            ):
                await asyncio.to_thread(plane.wait_for, lambda: "training" in plane.text())
                peers = Peers({"*": services.address}, token=running.user_token)
                signals = running.services[0].signals  # type: ignore[attr-defined]
                answered: set[str] = set()
                watches = [
                    asyncio.create_task(
                        asyncio.to_thread(sdk_watch, PreemptionServiceStub(channel), answered)
                    ),
                    asyncio.create_task(service_watch(PreemptionServiceStub(peers.channel("any")), answered)),
                ]
                # A call without an answer is made again, over a connection that nobody answers either.
                await wait_until_async(lambda: len(answered) == len(watches))
                for proxy in (services, supervisors):
                    proxy.partition()
                plane.send_signal(preempt=True)
                supervisors.heal()
                # Either end finds out: the clients by an error, the server by the end of their watches.
                for error in await asyncio.wait_for(asyncio.gather(*watches), FOUND_SECONDS):
                    assert isinstance(error, UnavailableError)
                await wait_until_async(lambda: signals.watchers == 0, seconds=FOUND_SECONDS)
                assert await asyncio.to_thread(run.wait, FOUND_SECONDS) == 0
                assert run.record().acknowledged
                await peers.close()
    finally:
        await source.stop()


def sdk_watch(stub: Any, answered: set[str]) -> Exception | None:
    """Watches as supervisors and the command line do, until the watch breaks."""
    try:
        for _ in stub.WatchSignals(REQUEST):
            answered.add("sdk")
    except ResoluteError as error:
        return error
    return None


async def service_watch(stub: Any, answered: set[str]) -> Exception | None:
    """Watches as one service watches another."""
    try:
        async for _ in stub.WatchSignals(REQUEST):
            answered.add("service")
    except ResoluteError as error:
        return error
    return None
