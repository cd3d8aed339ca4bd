"""Headers and paths that gRPC cannot carry are refused in words, and none is a failure of the gateway."""

from __future__ import annotations

import asyncio
import http.client
from typing import Any

import pytest
from support.services.gateway import gateway
from support.services.stand_ins.scripted_grpc import scripted_grpc

CLUSTER = "/resolute.api.experiments.v1.ClusterService/GetCluster"
PAGE = "https://page.example"
JSON = b"Content-Type: application/json"


def request(start: bytes, *lines: bytes, body: bytes = b"{}") -> bytes:
    named = [line.partition(b":")[0].lower() for line in lines]
    host = [] if b"host" in named else [b"Host: localhost"]
    sized = [b"Content-Length: %d" % len(body), b"Connection: close"]
    return b"\r\n".join([start + b" HTTP/1.1", *host, *lines, *sized]) + b"\r\n\r\n" + body


CALL = b"POST " + CLUSTER.encode()
REFUSED = [
    request(CALL, JSON, b"Authorization: Bearer \xe9"),
    request(CALL, JSON, b"Authorization: Bearer \xc3\xa9"),
    request(CALL, JSON, b"Authorization: Bearer a\tb"),
    request(CALL, JSON, b"X-Resolute-Trace: \xff"),
    request(CALL, JSON, b"X-Resolute-Client: a\tb"),
    request(CALL, JSON, b"X-Resolute-A!b: c"),
    request(CALL, b"Content-Type: application/json\xff"),
    request(CALL, JSON, b"Host: \xff"),
    request(CALL, JSON, b"Origin: https://page.example\xff"),
    request(CALL, JSON, b"Connect-Timeout-Ms: -5"),
    request(b"POST /a%ff%00%0a", JSON),
    request(b"POST /\xff", JSON),
    request(b"GET /%ff%00%0a", body=b""),
    request(b"GET /docs/%00", body=b""),
    request(b"PUT " + CLUSTER.encode(), JSON),
    request(
        b"OPTIONS " + CLUSTER.encode(),
        b"Origin: https://page.example",
        b"Access-Control-Request-Method: \xff",
        body=b"",
    ),
]
ANSWERED = [
    request(CALL, JSON, b"User-Agent: Jos\xe9"),
    request(CALL, JSON, b"X-Other: a\tb\xff"),
    request(CALL, JSON, b"Cookie: a=\xff\xfe"),
    request(CALL, JSON, b"Connect-Timeout-Ms: \xff"),
]


async def status(port: int, raw: bytes) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw)
    first = await asyncio.wait_for(reader.readline(), 30)
    writer.close()
    return int(first.split()[1])


def test_no_header_and_no_path_makes_the_gateway_fail(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(data: bytes, context: Any) -> bytes:
        return b""

    async def scenario() -> None:
        async with (
            scripted_grpc(unary={CLUSTER: answer}) as address,
            gateway(address, origins=frozenset({PAGE})) as served,
        ):
            for raw in REFUSED:
                assert http.client.BAD_REQUEST <= await status(served.port, raw) < 500, raw
            for raw in ANSWERED:
                assert await status(served.port, raw) == http.client.OK, raw
        assert not [record for record in caplog.records if record.exc_info]

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_the_refusal_of_a_header_names_it() -> None:
    async def scenario() -> None:
        async with scripted_grpc() as address, gateway(address) as served:
            refused = await served.json(CLUSTER, {}, x_resolute_client="a\tb")
            assert (refused.status, refused.json()["code"]) == (400, "invalid_argument")
            assert "x-resolute-client" in refused.json()["message"]

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_broken_requests_leave_nothing_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> list[int]:
        async with gateway("127.0.0.1:1") as http:
            broken = [b"\0\1\r\n\r\n", request(b"GET /", b"A b: c"), request(b"GET /", b"Upgrade: websocket")]
            return [await status(http.port, raw) for raw in broken for _ in range(3)]

    asyncio.run(body())
    assert not caplog.records


def test_requests_that_have_not_ended_when_it_stops_leave_no_traceback(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from resolute_gateway.listening import http_server  # skipped where HTTP cannot be served

    monkeypatch.setattr(http_server, "_GRACE_SECONDS", 0.1)
    half = request(CALL, JSON, body=b"{}")[:-1]

    async def body() -> None:
        async with gateway("127.0.0.1:1") as served:
            opened = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(3)]
            for _, writer in opened:
                writer.write(half)
            assert await status(served.port, request(b"GET /healthz", body=b"")) == http.client.OK
        for _, writer in opened:
            writer.close()

    asyncio.run(asyncio.wait_for(body(), 60))
    assert not [record for record in caplog.records if record.exc_info]
