"""Calls whose server stands still, dies and is replaced: every one of them ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.ports import free_port
from support.processes.suspension import suspend
from support.services.processes import health as health_process
from support.waiting import wait_until

from resolute.contracts.calls.retries import ATTEMPTS
from resolute.errors import UnavailableError
from resolute.rpc.channel import CHANNEL_OPTIONS, open_channel
from resolute_serving.server.channels.peers import Peers

STREAMS = 30
REQUEST = health_pb2.HealthCheckRequest()
SERVING = health_pb2.HealthCheckResponse.SERVING


@contextmanager
def killed_server(port: int) -> Iterator[None]:
    """A server that stands still when the body begins, and is dead after it."""
    with health_process.running(port) as server:
        suspend(server.pid)
        yield


def first_of(channel: grpc.Channel) -> str:
    """The first response of a stream, or why there is none."""
    try:
        stream = health_pb2_grpc.HealthStub(channel).Watch(REQUEST)
        return str(health_pb2.HealthCheckResponse.ServingStatus.Name(next(stream).status))
    except UnavailableError as failure:
        return str(failure)


@pytest.mark.parametrize("attempt", range(2))
def test_no_stream_outlives_the_loss_of_a_server_that_stood_still(
    monkeypatch: pytest.MonkeyPatch, attempt: int
) -> None:
    address = f"127.0.0.1:{(port := free_port())}"
    # The channels are closed first: that ends streams which nothing else does.
    with ThreadPoolExecutor(STREAMS) as threads, ExitStack() as stack:
        results: list[Future[str]] = []
        with killed_server(port):
            for number in range(STREAMS):
                # Each makes a connection of its own, which gRPC would share otherwise.
                options = (*CHANNEL_OPTIONS, ("resolute.test", attempt * STREAMS + number))
                monkeypatch.setattr("resolute.rpc.channel.CHANNEL_OPTIONS", options)
                channel = stack.enter_context(open_channel(address))
                results.append(threads.submit(first_of, channel))
            wait_until(lambda: all(result.running() or result.done() for result in results))
        stack.enter_context(health_process.running(port))
        for result in results:
            said = result.result(60)
            assert said == "SERVING" or said.startswith(f"cannot reach {address}"), said


class Failing(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # it has no types
    """Is unavailable at first."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0

    def Check(self, request: Any, context: grpc.ServicerContext) -> health_pb2.HealthCheckResponse:  # noqa: N802
        self._fail(context)
        return health_pb2.HealthCheckResponse(status=SERVING)

    def Watch(  # noqa: N802
        self, request: Any, context: grpc.ServicerContext
    ) -> Iterator[health_pb2.HealthCheckResponse]:
        self._fail(context)
        yield health_pb2.HealthCheckResponse(status=SERVING)
        context.abort(grpc.StatusCode.UNAVAILABLE, "away again")

    def _fail(self, context: grpc.ServicerContext) -> None:
        self.calls += 1
        if self.calls <= self.failures:
            context.abort(grpc.StatusCode.UNAVAILABLE, "away")


@contextmanager
def serving(servicer: Failing) -> Iterator[str]:
    """The address of a server in this process."""
    server = grpc.server(ThreadPoolExecutor(4))
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(0).wait()


def test_a_call_is_repeated_until_the_last_of_its_attempts() -> None:
    servicer = Failing(ATTEMPTS - 1)
    with serving(servicer) as address, open_channel(address) as channel:
        assert health_pb2_grpc.HealthStub(channel).Check(REQUEST).status == SERVING
    assert servicer.calls == ATTEMPTS
    servicer = Failing(ATTEMPTS)
    with serving(servicer) as address, open_channel(address) as channel, pytest.raises(UnavailableError):
        health_pb2_grpc.HealthStub(channel).Check(REQUEST)
    assert servicer.calls == ATTEMPTS


def test_a_stream_is_begun_again_only_before_its_first_response() -> None:
    servicer = Failing(2)
    with serving(servicer) as address, open_channel(address) as channel:
        stream = health_pb2_grpc.HealthStub(channel).Watch(REQUEST)
        assert next(stream).status == SERVING
        with pytest.raises(UnavailableError):
            next(stream)
    assert servicer.calls == 3


def test_a_stream_that_is_cancelled_is_not_begun_again() -> None:
    servicer = Failing(ATTEMPTS)
    with serving(servicer) as address, open_channel(address) as channel:
        stream = health_pb2_grpc.HealthStub(channel).Watch(REQUEST)
        stream.cancel()
        with pytest.raises(UnavailableError):
            next(stream)
    assert servicer.calls <= 1


def test_a_call_between_services_is_repeated_too() -> None:
    async def check(address: str) -> int:
        peers = Peers({"*": address}, token=lambda: "")
        try:
            stub: Any = health_pb2_grpc.HealthStub(peers.channel("health"))
            response = await stub.Check(REQUEST)
            return int(response.status)
        finally:
            await peers.close()

    servicer = Failing(ATTEMPTS - 1)
    with serving(servicer) as address:
        assert asyncio.run(check(address)) == SERVING
    assert servicer.calls == ATTEMPTS
