"""Clients that are too old are told so, and what to install."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from support.services.in_process import Running, serving

from resolute.api.experiments.v1 import cluster_service_pb2 as pb2
from resolute.api.experiments.v1.cluster_service_pb2_grpc import ClusterServiceStub
from resolute.contracts import distribution
from resolute.contracts.calls.client_version import release_of
from resolute.errors import ClientTooOldError, InvalidArgumentError
from resolute.rpc.channel import open_channel
from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.server.client_versions import oldest_client


async def call_as(running: Running, client: str) -> grpc.StatusCode:
    """Makes a call with a client's header as it is given."""
    token = running.user_token()
    metadata = [("authorization", f"Bearer {token}"), ("x-resolute-client", client)]
    async with grpc.aio.insecure_channel(running.address) as channel:
        stub: Any = ClusterServiceStub(channel)
        try:
            await stub.GetCluster(pb2.GetClusterRequest(), metadata=metadata)
        except grpc.aio.AioRpcError as failure:
            status = rpc_status.from_call(failure)
            assert status is not None
            info = error_details_pb2.ErrorInfo()
            status.details[0].Unpack(info)
            assert info.reason == "CLIENT_TOO_OLD"
            assert info.metadata["oldest_version"] == "0.2.0"
            assert "pip install --upgrade 'resolute-train>=0.2.0'" in status.message
            return failure.code()
    return grpc.StatusCode.OK


def test_clients_below_the_oldest_version_are_refused(tmp_path: Path) -> None:
    refused = ("sdk/0.1.0", "sdk/0.1.99", "sdk/0.1", "sdk/0", "sdk/0.1.9rc1")
    accepted = ("sdk/0.2.0", "sdk/0.2", "sdk/0.10.0", "sdk/0.2.0.dev3+g1234", "sdk/1")
    others = ("", "sdk", "sdk/", "sdk/new", "SDK/0.1.0", "browser/0.0.1", "/0.1.0")

    async def scenario() -> None:
        async with serving([BLUEPRINT], tmp_path, oldest_client="0.2.0") as running:
            for client in refused:
                assert await call_as(running, client) is grpc.StatusCode.FAILED_PRECONDITION, client
            for client in (*accepted, *others):
                assert await call_as(running, client) is grpc.StatusCode.OK, client

    asyncio.run(scenario())


@pytest.mark.parametrize(("oldest", "accepted"), [("0.1.0", True), ("999", False)])
def test_the_sdk_tells_the_version_that_is_installed(tmp_path: Path, oldest: str, accepted: bool) -> None:
    def call(running: Running) -> None:
        with open_channel(running.address, token=running.user_token) as channel:
            ClusterServiceStub(channel).GetCluster(pb2.GetClusterRequest())

    async def scenario() -> None:
        async with serving([BLUEPRINT], tmp_path, oldest_client=oldest) as running:
            if accepted:
                await asyncio.to_thread(call, running)
                return
            with pytest.raises(ClientTooOldError) as refusal:
                await asyncio.to_thread(call, running)
            assert refusal.value.metadata["version"] == distribution.version()

    asyncio.run(scenario())


def test_the_oldest_version_is_a_setting() -> None:
    assert oldest_client({}) == "0.1.0"
    assert oldest_client({"RESOLUTE_OLDEST_CLIENT": "0.3"}) == "0.3"
    with pytest.raises(InvalidArgumentError, match="RESOLUTE_OLDEST_CLIENT is 'new'"):
        oldest_client({"RESOLUTE_OLDEST_CLIENT": "new"})


@pytest.mark.parametrize(
    ("version", "release"),
    [("0.1.0", (0, 1)), ("v2.0", (2,)), ("1.2.3.dev4", (1, 2, 3)), ("0", ()), ("", None), ("x", None)],
)
def test_versions_are_compared_by_their_numbers(version: str, release: tuple[int, ...] | None) -> None:
    assert release_of(version) == release
