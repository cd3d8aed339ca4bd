"""What a proxy of deploy/gateway passes on is what the services and the gateway say."""

from __future__ import annotations

import asyncio
import io
import os
import random
import socket
import tarfile
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import urllib3
import yaml
from faults.fuzz.campaign import end_processes
from faults.fuzz.world import Caller, make_world
from front.proxies import KINDS, Proxy, proxy
from support.call_ways import ByGrpc, ByHttp, Way
from support.clusters.all_services import CONFIG
from support.conformance import compare
from support.services.gateway import GatewayClient, gateway
from support.services.in_process import Running, serving

from resolute.api.experiments.v1 import (
    experiment_pb2,
    experiments_service_pb2,
    experiments_service_pb2_grpc,
)
from resolute_embedded.blueprints import BLUEPRINTS

_PART = 1 << 20
_PARTS = 256


@dataclass(frozen=True)
class Front:
    """Services behind a proxy."""

    services: Running
    proxy: Proxy
    channel: grpc.aio.Channel
    """gRPC through the proxy."""
    http: GatewayClient
    """HTTP through the proxy."""

    @property
    def experiments(self) -> Any:
        """Stub of ExperimentsService, through the proxy."""
        return experiments_service_pb2_grpc.ExperimentsServiceStub(self.channel)

    @property
    def metadata(self) -> list[tuple[str, str]]:
        """What lets an admin in."""
        return [("authorization", f"Bearer {self.services.user_token()}")]


@asynccontextmanager
async def behind(kind: str, folder: Path, *, dead_gateway: int = 0) -> AsyncIterator[Front]:
    """Serves everything behind a proxy, with two gateways, until the block ends.

    Args:
        kind: nginx or envoy.
        folder: An empty directory.
        dead_gateway: Port of a gateway that does not answer, in place of the second one.
    """
    for name in ("services", "proxy"):
        (folder / name).mkdir()
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(serving(BLUEPRINTS, folder / "services"))
        gateways = [await stack.enter_async_context(gateway(services.address)) for _ in range(2)]
        running = stack.enter_context(
            proxy(
                kind,
                folder / "proxy",
                grpc_port=int(services.address.rpartition(":")[2]),
                http_ports=(gateways[0].port, dead_gateway or gateways[1].port),
            )
        )
        channel = await stack.enter_async_context(running.channel())
        pool = urllib3.HTTPSConnectionPool(
            "localhost", running.port, ca_certs=str(running.authority), maxsize=32
        )
        stack.callback(pool.close)
        stack.callback(end_processes, folder / "services")
        yield Front(services, running, channel, GatewayClient(running.port, services.user_token(), pool))


@pytest.fixture(autouse=True)
def _one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")


@pytest.mark.parametrize("kind", KINDS)
def test_every_call_ends_through_a_proxy_as_it_does_without(kind: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with behind(kind, tmp_path) as front:
            caller = Caller(front.services)
            ways: dict[str, Way] = {
                "gRPC": ByGrpc(front.channel),
                "JSON": ByHttp(front.http, in_json=True),
                "binary": ByHttp(front.http, in_json=False),
            }
            try:
                world = await make_world(caller, tmp_path / "services", random.Random(1))
                comparison = await compare(caller, world, ways)
            finally:
                await caller.channel.close()
        comparison.check(ways)

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", KINDS)
def test_no_call_fails_while_one_gateway_of_two_is_away(kind: str, tmp_path: Path) -> None:
    async def scenario(port: int) -> None:
        async with behind(kind, tmp_path, dead_gateway=port) as front:
            name = "/resolute.api.experiments.v1.ClusterService/GetCluster"
            responses = [await front.http.json(name, {}) for _ in range(12)]
            assert [one.status for one in responses] == [200] * 12

    with socket.socket() as refusing:
        # Bound, so that nobody else takes it, and not listening.
        refusing.bind(("127.0.0.1", 0))
        asyncio.run(scenario(refusing.getsockname()[1]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_model_definition_arrives_in_chunks(kind: str, tmp_path: Path) -> None:
    """256 MiB that do not compress: nothing on the way may hold or refuse them."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=1) as packed:
        for number in range(_PARTS):
            info = tarfile.TarInfo(f"part{number}")
            info.size = _PART
            packed.addfile(info, io.BytesIO(os.urandom(_PART)))
    size = archive.tell()
    assert size > _PARTS * _PART

    async def parts() -> AsyncIterator[experiments_service_pb2.CreateExperimentInChunksRequest]:
        kind_of = experiments_service_pb2.CreateExperimentInChunksRequest
        spec = experiments_service_pb2.ExperimentSpec(config_yaml=yaml.safe_dump(CONFIG), paused=True)
        yield kind_of(header=kind_of.Header(request_id=str(uuid.uuid4()), spec=spec))
        archive.seek(0)
        while chunk := archive.read(_PART):
            yield kind_of(chunk=chunk)

    async def scenario() -> None:
        async with behind(kind, tmp_path) as front:
            created = await front.experiments.CreateExperimentInChunks(
                parts(), metadata=front.metadata, timeout=500
            )
            assert created.experiment.model_definition_bytes == size
            request = experiments_service_pb2.GetModelDefinitionRequest(
                experiment=experiment_pb2.ExperimentKey(number=created.experiment.number)
            )
            received = 0
            async for response in front.experiments.GetModelDefinition(request, metadata=front.metadata):
                received += len(response.chunk)
            assert received == size

    asyncio.run(scenario())
