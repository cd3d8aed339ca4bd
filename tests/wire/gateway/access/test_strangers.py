"""What a caller who is not signed in can make the gateway do."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from support.services.gateway import GatewayClient, gateway, need_http
from support.services.in_process import Running, serving

from resolute_embedded.blueprints import BLUEPRINTS
from resolute_serving.context import TrialRun

CREATE = "/resolute.api.experiments.v1.ExperimentsService/CreateExperiment"
LOGIN = "/resolute.api.experiments.v1.AccessService/Login"
CLUSTER = "/resolute.api.experiments.v1.ClusterService/GetCluster"
LIST = "/resolute.api.experiments.v1.ExperimentsService/ListExperiments"
SIMULATE = "/resolute.api.searcher.v1.SearcherService/SimulateSearch"
LARGE = {"config": "x" * 10_000, "noSuchField": 1}
RUN = TrialRun("t", 1, "e", "a", "Uncategorized")


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the messages that were converted from JSON."""
    need_http()
    from resolute_serving.workers.pool import WorkerPool

    sizes: list[int] = []
    run = WorkerPool.run

    async def noted(pool: Any, work: Any, data: bytes, *kind: str, caller: str) -> Any:
        sizes.append(len(data))
        return await run(pool, work, data, *kind, caller=caller)

    monkeypatch.setattr(WorkerPool, "run", noted)
    return sizes


def test_large_json_is_converted_for_callers_who_are_signed_in_alone(
    tmp_path: Path, converted: list[int]
) -> None:
    async def scenario(running: Running, http: GatewayClient) -> None:
        tokens = {
            "stranger": "nonsense",
            "user": running.user_token(),
            "trial": running.trial_token(RUN),
            "service": running.service_token(),
        }
        ended = {}
        for name, token in tokens.items():
            before = len(converted)
            response = await http.json(CREATE, LARGE, authorization=f"Bearer {token}")
            ended[name] = (response.json()["code"], len(converted) - before)
        assert ended == {
            "stranger": ("unauthenticated", 0),
            "user": ("invalid_argument", 1),
            "trial": ("invalid_argument", 1),
            "service": ("invalid_argument", 1),
        }

    run(scenario, tmp_path)


def test_a_public_call_takes_large_json_without_a_token(tmp_path: Path, converted: list[int]) -> None:
    async def scenario(running: Running, http: GatewayClient) -> None:
        response = await http.json(LOGIN, {"userName": "x" * 10_000}, authorization="")
        assert len(converted) == 1
        assert response.status != 200

    run(scenario, tmp_path)


def test_compressed_bodies_are_refused_and_answers_are_not_compressed(tmp_path: Path) -> None:
    async def scenario(running: Running, http: GatewayClient) -> None:
        packed = gzip.compress(json.dumps({}).encode())
        refused = await http.post(CLUSTER, packed, content_encoding="gzip")
        assert (refused.status, refused.json()["code"]) == (501, "unimplemented")
        assert "compression is not supported" in refused.json()["message"]
        plain = await http.json(CLUSTER, {}, accept_encoding="gzip")
        assert (plain.status, plain.headers.get("content-encoding", "identity")) == (200, "identity")

    run(scenario, tmp_path)


def run(scenario: Any, tmp_path: Path) -> None:
    async def served() -> None:
        async with (
            serving(BLUEPRINTS, tmp_path) as running,
            gateway(running.address, token=running.user_token()) as http,
        ):
            await scenario(running, http)

    asyncio.run(asyncio.wait_for(served(), 60))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (SIMULATE, b'{"curves":[' + b"{}," * 4_190_000 + b"{}]}"),
        (CREATE, b'{"config":"' + b"[," * 1_000_000 + b'"}'),
        (LOGIN, b'{"userName":[' + b"1," * 10_000 + b"1]}"),
        (CLUSTER, b"[" * 2_000_000),
    ],
)
def test_json_with_too_many_values_is_refused_unread(
    tmp_path: Path, converted: list[int], path: str, body: bytes
) -> None:
    async def scenario(running: Running, http: GatewayClient) -> None:
        response = await http.post(path, body)
        assert response.status == 400
        assert "commas and brackets; this call takes at most" in response.json()["message"]
        assert not converted

    run(scenario, tmp_path)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"pageSize": ' + b"1" * 100_000 + b"}", id="digits of a number"),
        pytest.param(b'{"pageSize": "' + b"1" * 100_000 + b'"}', id="digits of a text"),
        pytest.param(b'{"a":' * 20_000 + b"1" + b"}" * 20_000, id="depth"),
        pytest.param(b'{"pageToken": "\\ud800' + b"x" * 5000 + b'"}', id="half a surrogate"),
        pytest.param(b"\xff" * 5000, id="no text"),
    ],
)
def test_odd_json_is_an_error_of_its_caller(tmp_path: Path, body: bytes) -> None:
    async def scenario(running: Running, http: GatewayClient) -> None:
        response = await http.post(LIST, body)
        assert (response.status, response.json()["code"]) == (400, "invalid_argument")

    run(scenario, tmp_path)
