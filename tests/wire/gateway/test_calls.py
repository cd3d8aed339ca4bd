"""What passes through the gateway: messages, errors, deadlines, headers, streams, and their ends."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from google.rpc import error_details_pb2
from support.services.gateway import gateway
from support.services.stand_ins.scripted_grpc import scripted_grpc

from resolute.api.experiments.v1 import cluster_service_pb2, experiments_service_pb2
from resolute.api.metrics.v1 import metrics_service_pb2
from resolute.errors import InvalidArgumentError, Violation
from resolute_serving.server.calls import to_status

CLUSTER = "/resolute.api.experiments.v1.ClusterService/GetCluster"
LOGIN = "/resolute.api.experiments.v1.AccessService/Login"
WATCH = "/resolute.api.experiments.v1.ExperimentsService/WatchExperiments"
CURRENT_USER = "/resolute.api.experiments.v1.AccessService/GetCurrentUser"
SERIES = "/resolute.api.metrics.v1.MetricsService/GetSeries"
ANSWER = cluster_service_pb2.GetClusterResponse(version="1.2.3", queued_trials=4)
END_OF_STREAM = 2


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))


def frames(data: bytes) -> list[tuple[int, bytes]]:
    """Splits a stream into its messages, each with its flags."""
    found = []
    while data:
        flags, length = struct.unpack(">BI", data[:5])
        found.append((flags, data[5 : 5 + length]))
        data = data[5 + length :]
    return found


def framed(message: bytes) -> bytes:
    return struct.pack(">BI", 0, len(message)) + message


async def answer(data: bytes, context: Any) -> bytes:
    return ANSWER.SerializeToString()


def test_a_call_in_json_and_in_binary_has_one_answer() -> None:
    async def scenario() -> None:
        async with scripted_grpc(unary={CLUSTER: answer}) as address, gateway(address) as http:
            as_json = await http.json(CLUSTER, {})
            as_binary = await http.binary(CLUSTER, cluster_service_pb2.GetClusterRequest())
        assert as_json.json() == {"version": "1.2.3", "queuedTrials": "4"}
        assert as_binary.data == ANSWER.SerializeToString()
        assert as_binary.headers["content-type"] == "application/proto"

    run(scenario)


def test_binary_messages_pass_as_they_are() -> None:
    # Fields of a newer contract must survive, and nothing may be spent on reading.
    unknown = b"\xfa\x7f\x03abc"
    seen = []

    async def echo(data: bytes, context: Any) -> bytes:
        seen.append(data)
        return data

    async def scenario() -> None:
        async with scripted_grpc(unary={CLUSTER: echo}) as address, gateway(address) as http:
            assert (await http.post(CLUSTER, unknown, kind="application/proto")).data == unknown

    run(scenario)
    assert seen == [unknown]


def test_an_error_carries_its_details_in_both_protocols() -> None:
    error = InvalidArgumentError("x is wrong", violations=[Violation("x", "must be 1")])

    async def fail(data: bytes, context: Any) -> bytes:
        from grpc_status import rpc_status

        await context.abort_with_status(rpc_status.to_status(to_status(error)))
        return b""

    async def scenario() -> None:
        async with scripted_grpc(unary={CLUSTER: fail}) as address, gateway(address) as http:
            connect = await http.json(CLUSTER, {})
            web = await http.post(CLUSTER, framed(b""), kind="application/grpc-web+proto")
        assert connect.status == 400
        content = connect.json()
        assert (content["code"], content["message"]) == ("invalid_argument", "x is wrong")
        info, bad = content["details"]
        assert info["type"] == "google.rpc.ErrorInfo"
        assert info["debug"]["reason"] == "INVALID_ARGUMENT"
        packed = base64.b64decode(bad["value"] + "==")
        (violation,) = error_details_pb2.BadRequest.FromString(packed).field_violations
        assert (violation.field, violation.description) == ("x", "must be 1")
        trailers = web.headers if "grpc-status" in web.headers else frames(web.data)[-1][1].decode()
        assert "grpc-status-details-bin" in trailers
        assert "x%20is%20wrong" in str(trailers) or "x is wrong" in str(trailers)

    run(scenario)


def test_a_field_that_does_not_exist_is_an_error() -> None:
    async def scenario() -> None:
        calls = {CLUSTER: answer, CURRENT_USER: answer}
        async with scripted_grpc(unary=calls) as address, gateway(address) as http:
            refused = await http.json(CLUSTER, {"filtre": 1})
            broken = await http.post(CLUSTER, b"[" * 100_000)
        assert refused.status == 400
        assert "filtre" in refused.json()["message"]
        assert (broken.status, broken.json()["code"]) == (400, "invalid_argument")

    run(scenario)


def test_headers_pass_and_a_trace_is_named() -> None:
    seen: list[dict[str, Any]] = []

    async def note(data: bytes, context: Any) -> bytes:
        seen.append(dict(context.invocation_metadata()))
        return b""

    async def scenario() -> None:
        async with scripted_grpc(unary={CLUSTER: note}) as address, gateway(address, token="t") as http:
            given = await http.json(CLUSTER, {}, x_resolute_trace="abc", cookie="a=b")
            made = await http.json(CLUSTER, {})
        assert seen[0]["authorization"] == "Bearer t"
        assert seen[0]["x-resolute-trace"] == given.headers["x-resolute-trace"] == "abc"
        assert "cookie" not in seen[0]
        assert seen[1]["x-resolute-trace"] == made.headers["x-resolute-trace"]
        assert len(made.headers["x-resolute-trace"]) == 32

    run(scenario)


def test_a_deadline_passes_and_there_is_one_where_none_is_given() -> None:
    left: list[float] = []

    async def note(data: bytes, context: Any) -> bytes:
        left.append(context.time_remaining())
        return b""

    async def wait(data: bytes, context: Any) -> bytes:
        await asyncio.Event().wait()
        return b""

    async def scenario() -> None:
        async with (
            scripted_grpc(unary={CLUSTER: note, LOGIN: wait}) as address,
            gateway(address) as http,
        ):
            await http.json(CLUSTER, {}, connect_timeout_ms="5000000")
            await http.json(CLUSTER, {})
            late = await http.json(LOGIN, {}, connect_timeout_ms="50")
        assert 4000 < left[0] < 5001
        assert 0 < left[1] < 61
        assert (late.status, late.json()["code"]) == (504, "deadline_exceeded")

    run(scenario)


@pytest.mark.parametrize("way", ["to_binary", "to_json"])
def test_a_call_ends_at_its_deadline_although_its_messages_still_wait_to_be_converted(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait(*_: Any, **__: Any) -> bytes:
        await asyncio.Event().wait()
        return b""

    async def scenario() -> None:
        async with scripted_grpc(unary={CLUSTER: answer}) as address, gateway(address) as http:
            late = await http.json(CLUSTER, {})
        assert (late.status, late.json()["code"]) == (504, "deadline_exceeded")

    monkeypatch.setattr("resolute_gateway.rpc.procedure.DEFAULT_DEADLINE", 0.5)
    monkeypatch.setattr(f"resolute_gateway.rpc.json_conversion.JsonConversion.{way}", wait)
    run(scenario)


def test_a_stream_ends_at_its_deadline_although_its_request_still_waits_to_be_converted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def wait(*_: Any, **__: Any) -> bytes:
        await asyncio.Event().wait()
        return b""

    async def stream(data: bytes, context: Any) -> AsyncIterator[bytes]:
        yield b""

    async def scenario() -> None:
        async with scripted_grpc(streams={WATCH: stream}) as address, gateway(address) as http:
            late = await http.post(WATCH, framed(b"{}"), kind="application/connect+json")
        ((flags, end),) = frames(late.data)
        assert (flags, json.loads(end)["error"]["code"]) == (END_OF_STREAM, "deadline_exceeded")

    monkeypatch.setattr("resolute_gateway.rpc.procedure.DEFAULT_DEADLINE", 0.5)
    monkeypatch.setattr("resolute_gateway.rpc.json_conversion.JsonConversion.to_binary", wait)
    run(scenario)


def test_a_call_ends_with_its_client() -> None:
    async def scenario() -> None:
        began, ended = asyncio.Event(), asyncio.Event()

        async def stay(data: bytes, context: Any) -> AsyncIterator[bytes]:
            try:
                yield b""
                began.set()
                await asyncio.Event().wait()
            finally:
                ended.set()

        async with scripted_grpc(streams={WATCH: stay}) as address, gateway(address) as http:
            reader, writer = await asyncio.open_connection("127.0.0.1", http.port)
            body = framed(b"")
            writer.write(
                f"POST {WATCH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/connect+proto\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            await reader.readuntil(b"\r\n\r\n")
            await began.wait()
            writer.close()
            await ended.wait()

    run(scenario)


@pytest.mark.parametrize("encoding", ["proto", "json"])
def test_a_stream_passes_message_by_message(encoding: str) -> None:
    change = experiments_service_pb2.WatchExperimentsResponse()
    change.experiment_change.experiment.name = "one"

    async def stream(data: bytes, context: Any) -> AsyncIterator[bytes]:
        for _ in range(3):
            yield change.SerializeToString()

    async def scenario() -> None:
        async with scripted_grpc(streams={WATCH: stream}) as address, gateway(address) as http:
            request = b"{}" if encoding == "json" else b""
            response = await http.post(WATCH, framed(request), kind=f"application/connect+{encoding}")
        *messages, (flags, end) = frames(response.data)
        assert (flags, json.loads(end)) == (END_OF_STREAM, {})
        assert len(messages) == 3
        one = messages[0][1]
        if encoding == "json":
            assert json.loads(one)["experimentChange"]["experiment"]["name"] == "one"
        else:
            assert one == change.SerializeToString()

    run(scenario)


def test_a_gateway_that_stops_tells_streams_to_connect_again() -> None:
    async def scenario() -> None:
        began = asyncio.Event()

        async def stay(data: bytes, context: Any) -> AsyncIterator[bytes]:
            yield b""
            began.set()
            await asyncio.Event().wait()

        async with scripted_grpc(streams={WATCH: stay}) as address:
            async with gateway(address) as http:
                response = asyncio.create_task(
                    http.post(WATCH, framed(b""), kind="application/connect+proto")
                )
                await began.wait()
            _, end = frames((await response).data)[-1]
        assert json.loads(end)["error"]["code"] == "unavailable"

    run(scenario)


def test_not_a_number_passes_in_json() -> None:
    async def series(data: bytes, context: Any) -> bytes:
        request = metrics_service_pb2.GetSeriesRequest.FromString(data)
        assert request.name == "loss"
        response = metrics_service_pb2.GetSeriesResponse()
        response.values.extend([1.5, float("nan"), float("inf")])
        return response.SerializeToString()

    async def scenario() -> None:
        async with scripted_grpc(unary={SERIES: series}) as address, gateway(address) as http:
            response = await http.json(SERIES, {"name": "loss"})
        assert response.json()["values"] == [1.5, "NaN", "Infinity"]

    run(scenario)


def test_large_answers_are_converted_beside_the_loop() -> None:
    response = metrics_service_pb2.GetSeriesResponse()
    response.values.extend([0.1] * 20_000)

    async def series(data: bytes, context: Any) -> bytes:
        return response.SerializeToString()

    async def scenario() -> None:
        from resolute_serving.workers.pool import WorkerPool

        sizes = []
        convert = WorkerPool.run

        async def noted(pool: Any, work: Any, data: bytes, *kind: str) -> Any:
            sizes.append(len(data))
            return await convert(pool, work, data, *kind)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(WorkerPool, "run", noted)
            async with scripted_grpc(unary={SERIES: series}) as address, gateway(address) as http:
                answered = await http.json(SERIES, {})
        assert len(answered.json()["values"]) == 20_000
        assert sizes == [response.ByteSize()]

    run(scenario)


def test_bodies_are_refused_by_their_length_before_they_are_sent() -> None:
    async def scenario() -> None:
        async with scripted_grpc(unary={CLUSTER: answer}) as address, gateway(address) as http:
            reader, writer = await asyncio.open_connection("127.0.0.1", http.port)
            writer.write(
                f"POST {LOGIN} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Content-Length: 100000\r\n\r\n".encode()
            )
            assert b" 413 " in await reader.readline()
            writer.close()
            # Without a length the body is counted as it comes.
            longest = 12 * 1024 * 1024
            chunks = (b"x" * 1024 * 1024 for _ in range(longest // 1024 // 1024 + 1))
            counted = await http.request(
                "POST", CLUSTER, body=chunks, headers={"content-type": "application/json"}
            )
        assert counted.json()["code"] == "resource_exhausted"

    run(scenario)


def test_calls_that_are_none_or_stream_requests_or_are_grpc_say_so() -> None:
    async def scenario() -> None:
        async with scripted_grpc() as address, gateway(address, grpc_address="grpc.example:443") as http:
            none = await http.json("/resolute.api.experiments.v1.ClusterService/Nothing", {})
            upload = await http.post(
                "/resolute.api.experiments.v1.ExperimentsService/CreateExperimentInChunks",
                framed(b""),
                kind="application/connect+proto",
            )
            grpc_call = await http.post(CLUSTER, framed(b""), kind="application/grpc")
        assert (none.status, none.json()["code"]) == (404, "unimplemented")
        assert "over gRPC" in json.loads(frames(upload.data)[-1][1])["error"]["message"]
        assert (grpc_call.status, "grpc.example:443" in grpc_call.json()["message"]) == (415, True)

    run(scenario)


def test_a_service_that_is_away_is_unavailable() -> None:
    async def scenario() -> None:
        with socket.socket() as silent:
            # Nobody listens on it, and nobody else can.
            silent.bind(("127.0.0.1", 0))
            async with gateway(f"127.0.0.1:{silent.getsockname()[1]}") as http:
                away = await http.json(CLUSTER, {})
        assert (away.status, away.json()["code"]) == (503, "unavailable")

    run(scenario)
