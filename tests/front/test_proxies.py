"""What a proxy of deploy/gateway passes on is what the services and the gateway say."""

from __future__ import annotations

import asyncio
import io
import os
import random
import socket
import tarfile
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
import urllib3
import yaml
from faults.fuzz.campaign import end_processes
from faults.fuzz.world import Caller, make_world
from front.proxies import KINDS, Proxy, proxy
from support.calls.conformance import compare
from support.calls.ways import ByGrpc, ByHttp, Way
from support.certificates import Authority
from support.clusters.all_services import CONFIG
from support.services.gateway import GatewayClient, gateway
from support.services.in_process import Running, serving

from resolute.api.experiments.v1 import (
    cluster_service_pb2,
    cluster_service_pb2_grpc,
    experiment_pb2,
    experiments_service_pb2,
    experiments_service_pb2_grpc,
)
from resolute.api.gateway.v1 import gateway_service_pb2, gateway_service_pb2_grpc
from resolute.api.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_serving.tls import ServerTls

GET_CLUSTER = "/resolute.api.experiments.v1.ClusterService/GetCluster"
_PART = 1 << 20
_PARTS = 256
_LONG = 75.0
"""Seconds: longer than what nginx and Envoy wait by themselves."""


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
    def cluster(self) -> Any:
        """Stub of ClusterService, through the proxy."""
        return cluster_service_pb2_grpc.ClusterServiceStub(self.channel)

    @property
    def logs(self) -> Any:
        """Stub of LogsService, through the proxy."""
        return logs_service_pb2_grpc.LogsServiceStub(self.channel)

    @property
    def metadata(self) -> list[tuple[str, str]]:
        """What lets an admin in."""
        return [("authorization", f"Bearer {self.services.user_token()}")]


@asynccontextmanager
async def behind(
    kind: str,
    folder: Path,
    *,
    dead_gateway: int = 0,
    dead_grpc: int = 0,
    authority: Authority | None = None,
    trusted: Authority | None = None,
) -> AsyncIterator[Front]:
    """Serves everything behind a proxy, with two gateways, until the block ends.

    Args:
        kind: nginx or envoy.
        folder: An empty directory.
        dead_gateway: Port of a gateway that does not answer, in place of the second one.
        dead_grpc: Port for gRPC of a gateway that does not answer, besides the one that does.
        authority: Signs the certificates of services, of gateways and of who may call services; None for
            plain ports.
        trusted: Whose certificates the proxy takes for those of services, if not the same authority's.
    """
    for name in ("services", "proxy"):
        (folder / name).mkdir()
    tls = peer_tls = None
    if authority is not None:
        files = authority.issue(folder)
        tls = ServerTls(replace(files, clients=authority.file))
        peer_tls = authority.trusted(own=files)
    async with AsyncExitStack() as stack:
        serves = serving(BLUEPRINTS, folder / "services", tls=tls, peer_tls=peer_tls)
        services = await stack.enter_async_context(serves)
        https = ServerTls(files) if authority else None
        gateways = [
            await stack.enter_async_context(gateway(services.address, tls=https, backend_tls=peer_tls))
            for _ in range(2)
        ]
        running = stack.enter_context(
            proxy(
                kind,
                folder / "proxy",
                grpc_port=int(services.address.rpartition(":")[2]),
                http_ports=(gateways[0].port, dead_gateway or gateways[1].port),
                second_grpc_port=dead_grpc,
                services=trusted or authority,
            )
        )
        channel = await stack.enter_async_context(running.channel())
        pool = urllib3.HTTPSConnectionPool(
            "localhost", running.port, ca_certs=str(running.authority), maxsize=32
        )
        stack.callback(pool.close)
        stack.callback(end_processes, folder / "services")
        yield Front(services, running, channel, GatewayClient(running.port, services.user_token(), pool))


async def upload(
    chunks: Iterable[bytes], *, pause: float = 0.0
) -> AsyncIterator[experiments_service_pb2.CreateExperimentInChunksRequest]:
    """The requests that create a paused experiment with a model definition; waits before its first byte."""
    kind_of = experiments_service_pb2.CreateExperimentInChunksRequest
    spec = experiments_service_pb2.ExperimentSpec(config_yaml=yaml.safe_dump(CONFIG), paused=True)
    yield kind_of(header=kind_of.Header(request_id=str(uuid.uuid4()), spec=spec))
    await asyncio.sleep(pause)
    for chunk in chunks:
        yield kind_of(chunk=chunk)


async def heartbeats(front: Front, count: int) -> int:
    """Follows a log of which there is nothing, and counts what comes to show that the stream lives."""
    request = logs_service_pb2.FollowLinesRequest()
    request.subscriptions.add(key="it").filter.trial_id = str(uuid.uuid4())
    call = front.logs.FollowLines(request, metadata=front.metadata, timeout=60 + 60 * count)
    came = 0
    async for response in call:
        came += not response.key
        if came == count:
            break
    call.cancel()
    return came


async def first_event(front: Front) -> str:
    """What comes first of a watch of the queue, which the gateway serves by gRPC."""
    request = gateway_service_pb2.WatchRequest()
    request.experiments.queue.key = "queue"
    stub: Any = gateway_service_pb2_grpc.GatewayServiceStub(front.channel)
    watch = stub.Watch(request, metadata=front.metadata, timeout=60)
    async for response in watch:
        if response.WhichOneof("event"):
            break
    watch.cancel()
    return str(response.WhichOneof("event"))


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
        async with behind(kind, tmp_path, dead_gateway=port, dead_grpc=port) as front:
            responses = [await front.http.json(GET_CLUSTER, {}) for _ in range(12)]
            assert [one.status for one in responses] == [200] * 12
            assert [await first_event(front) for _ in range(12)] == ["experiments"] * 12

    with socket.socket() as refusing:
        # Bound, so that nobody else takes it, and not listening.
        refusing.bind(("127.0.0.1", 0))
        asyncio.run(scenario(refusing.getsockname()[1]))


@pytest.mark.parametrize("kind", KINDS)
def test_services_and_gateways_with_tls_are_reached_by_a_proxy_they_know(kind: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with behind(kind, tmp_path, authority=Authority.create(tmp_path)) as front:
            directly = await front.cluster.GetCluster(
                cluster_service_pb2.GetClusterRequest(), metadata=front.metadata, timeout=60
            )
            by_http = await front.http.json(GET_CLUSTER, {})
            assert (by_http.status, by_http.json()["clusterId"]) == (200, directly.cluster_id)
            assert await heartbeats(front, 1) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", KINDS)
def test_a_proxy_sends_nothing_to_who_is_not_the_service(kind: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        real, other = Authority.create(tmp_path), Authority.create(tmp_path, name="other")
        async with behind(kind, tmp_path, authority=real, trusted=other) as front:
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await front.cluster.GetCluster(
                    cluster_service_pb2.GetClusterRequest(), metadata=front.metadata, timeout=60
                )
            assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
            assert (await front.http.json(GET_CLUSTER, {})).status in (502, 503)

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", KINDS)
def test_streams_and_uploads_may_be_slow_for_longer_than_a_minute(kind: str, tmp_path: Path) -> None:
    """Proxies take what is silent for a minute for lost, unless they are told otherwise."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("train.py"))

    async def scenario() -> None:
        async with behind(kind, tmp_path) as front:

            async def uploaded() -> int:
                created = await front.experiments.CreateExperimentInChunks(
                    upload([packed.getvalue()], pause=_LONG), metadata=front.metadata, timeout=500
                )
                return int(created.experiment.model_definition_bytes)

            came, size = await asyncio.gather(heartbeats(front, 5), uploaded())
            assert came == 5  # one in 15 seconds
            assert size == len(packed.getvalue())

    asyncio.run(scenario())


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

    archive.seek(0)

    async def scenario() -> None:
        async with behind(kind, tmp_path) as front:
            created = await front.experiments.CreateExperimentInChunks(
                upload(iter(partial(archive.read, _PART), b"")), metadata=front.metadata, timeout=500
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
