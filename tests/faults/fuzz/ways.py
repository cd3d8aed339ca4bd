"""Ways by which odd calls come: gRPC, Connect in JSON and binary, gRPC-web, and bytes that break rules."""

from __future__ import annotations

import asyncio
import json
import random
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

import grpc
import h11
from faults.fuzz.mutations import corrupt
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from support.calls.contract_methods import path

from resolute_gateway.rpc.procedure import DEFAULT_DEADLINE

_CALL_SECONDS = 2 * DEFAULT_DEADLINE
"""Longer than the gateway may take to answer, however busy this machine is."""
_STREAM_SECONDS = 0.2
_LAST_OF_CONNECT, _LAST_OF_WEB = 2, 128
"""Flags of the envelope that ends a stream of each protocol."""
_CODES = {"CANCELED": "CANCELLED"}
_ODD_JSON = 0.1
"""The share of calls in JSON whose text is corrupt."""


class Ended(NamedTuple):
    """How a call ended."""

    code: str
    """Name of its status; ``HTTP_404`` and the like where HTTP itself answered; ``CUT`` for a stream that
    went on; ``CLOSED`` for a connection that was closed without an answer, before all was read of it."""
    detail: str


class Way(Protocol):
    """Makes calls."""

    async def __call__(self, method: MethodDescriptor, data: bytes, token: str, rng: random.Random) -> Ended:
        """Makes a call with these bytes; streams of answers are cut off after a moment.

        Args:
            method: Which call.
            data: Its request, in binary; it may be corrupt.
            token: Who calls.
            rng: Chooses what the way itself makes odd.
        """


def by_grpc(channel: grpc.aio.Channel) -> Way:
    """Calls over gRPC."""

    async def send(method: MethodDescriptor, data: bytes, token: str, rng: random.Random) -> Ended:
        kind = ("stream" if method.client_streaming else "unary") + (
            "_stream" if method.server_streaming else "_unary"
        )
        sent = iter([data]) if method.client_streaming else data
        metadata = [("authorization", f"Bearer {token}")]
        call = getattr(channel, kind)(path(method))(sent, metadata=metadata, timeout=_seconds(method))
        try:
            if method.server_streaming:
                async for _ in call:
                    pass
            else:
                await call
        except grpc.aio.AioRpcError as failure:
            return Ended(failure.code().name, failure.details() or "")
        return Ended("OK", "")

    return send


def by_connect(port: int, *, in_json: bool) -> Way:
    """Calls by the Connect protocol."""
    codec = "json" if in_json else "proto"

    async def send(method: MethodDescriptor, data: bytes, token: str, rng: random.Random) -> Ended:
        streams = method.client_streaming or method.server_streaming
        body = _as_json(method, data, rng) if in_json else data
        kind = f"application/connect+{codec}" if streams else f"application/{codec}"
        answer = await _post(port, method, _framed(body) if streams else body, kind=kind, token=token)
        if answer.status != 200 or not streams:
            return _of_connect(answer, method)
        for flags, content in _frames(answer.body):
            if flags & _LAST_OF_CONNECT:
                return _of_error(json.loads(content).get("error"))
        return Ended("CUT", "")

    return send


def by_grpc_web(port: int) -> Way:
    """Calls by gRPC-web in binary."""

    async def send(method: MethodDescriptor, data: bytes, token: str, rng: random.Random) -> Ended:
        kind = "application/grpc-web+proto"
        answer = await _post(port, method, _framed(data), kind=kind, token=token)
        trailers = dict(answer.headers)
        for flags, content in _frames(answer.body):
            if flags & _LAST_OF_WEB:
                lines = (line.partition(b":") for line in content.split(b"\r\n") if line)
                trailers |= {name.lower(): value.strip() for name, _, value in lines}
        if b"grpc-status" in trailers:
            code = next(code for code in grpc.StatusCode if code.value[0] == int(trailers[b"grpc-status"]))
            return Ended(code.name, trailers.get(b"grpc-message", b"").decode())
        return _of_connect(answer, method) if answer.status != 200 else Ended("CUT", "")

    return send


def by_broken_http(port: int) -> Way:
    """Requests of HTTP/1.1 whose bytes are wrong."""

    async def send(method: MethodDescriptor, data: bytes, token: str, rng: random.Random) -> Ended:
        body = _as_json(method, data, rng)
        lines = [
            b"POST %s HTTP/1.1" % path(method).encode(),
            b"Host: localhost",
            b"Authorization: Bearer %s" % token.encode(),
            b"Content-Type: application/json",
            b"Content-Length: %d" % len(body),
            b"Connection: close",
        ]
        raw = rng.choice(_BREAKS)(lines, body, rng)
        found, _ = await _exchange(port, raw, seconds=_STREAM_SECONDS)
        status = found[9:12]
        return Ended(f"HTTP_{int(status)}" if status.isdigit() else "CLOSED", "")

    return send


def by_broken_http2(address: str) -> Way:
    """Connections to gRPC whose frames of HTTP/2 are wrong."""
    port = int(address.rpartition(":")[2])

    async def send(method: MethodDescriptor, data: bytes, token: str, rng: random.Random) -> Ended:
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        frames = [_odd_frame(data, rng) for _ in range(rng.randrange(1, 6))]
        raw = preface + _frame(4, 0, 0, b"") + b"".join(frames)
        await _exchange(port, corrupt(raw, rng) if rng.random() < 0.2 else raw, seconds=_STREAM_SECONDS)
        return Ended("CLOSED", "")

    return send


class _Answer(NamedTuple):
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    was_reset: bool
    """Whether the other side gave up: what it had answered may be lost then."""


async def _post(port: int, method: MethodDescriptor, body: bytes, *, kind: str, token: str) -> _Answer:
    connection = h11.Connection(h11.CLIENT)
    headers = [
        ("Host", "localhost"),
        ("Authorization", f"Bearer {token}"),
        ("Content-Type", kind),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    raw = b"".join(
        connection.send(event) or b""
        for event in (
            h11.Request(method="POST", target=path(method), headers=headers),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
    )
    received, was_reset = await _exchange(port, raw, seconds=_seconds(method))
    connection.receive_data(received)
    status, found, content = 0, [], b""
    with suppress(h11.RemoteProtocolError):  # what was cut off
        while isinstance(
            event := connection.next_event(), h11.InformationalResponse | h11.Response | h11.Data
        ):
            if isinstance(event, h11.Data):
                content += bytes(event.data)
            else:
                status, found = event.status_code, list(event.headers)
    return _Answer(status, found, content, was_reset)


async def _exchange(port: int, raw: bytes, *, seconds: float) -> tuple[bytes, bool]:
    """Sends bytes; returns what came until the other side closed or the time was over, and if it reset."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found = bytearray()

    async def receive() -> None:
        while chunk := await reader.read(1 << 16):
            found.extend(chunk)

    try:
        writer.write(raw)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(receive(), seconds)
    except OSError:
        return bytes(found), True
    finally:
        writer.transport.abort()
    return bytes(found), False


def _seconds(method: MethodDescriptor) -> float:
    return _STREAM_SECONDS if method.server_streaming else _CALL_SECONDS


def _of_connect(answer: _Answer, method: MethodDescriptor) -> Ended:
    if answer.status == 200:
        return Ended("OK", "")
    if not answer.status and (answer.was_reset or method.server_streaming):
        return Ended("CLOSED" if answer.was_reset else "CUT", "")
    try:
        return _of_error(json.loads(answer.body))
    except (ValueError, KeyError, TypeError):
        return Ended(f"HTTP_{answer.status}" if answer.status else "NO_ANSWER", answer.body[:300].decode())


def _of_error(error: dict[str, str] | None) -> Ended:
    if error is None:
        return Ended("OK", "")
    code = error["code"].upper()
    return Ended(_CODES.get(code, code), error.get("message", ""))


def _as_json(method: MethodDescriptor, data: bytes, rng: random.Random) -> bytes:
    try:
        message = GetMessageClass(method.input_type).FromString(data)
        text = json_format.MessageToJson(message).encode()
    except (DecodeError, json_format.Error, ValueError, RecursionError):
        text = json.dumps({"name": data.decode("latin-1")}).encode()
    return corrupt(text, rng) if rng.random() < _ODD_JSON else text


def _framed(data: bytes) -> bytes:
    return struct.pack(">BI", 0, len(data)) + data


def _frames(body: bytes) -> list[tuple[int, bytes]]:
    frames = []
    while len(body) >= 5:
        flags, length = struct.unpack(">BI", body[:5])
        if len(body) < 5 + length:
            break
        frames.append((flags, body[5 : 5 + length]))
        body = body[5 + length :]
    return frames


def _joined(lines: list[bytes], body: bytes) -> bytes:
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _corrupt_head(lines: list[bytes], body: bytes, rng: random.Random) -> bytes:
    return corrupt(b"\r\n".join(lines), rng) + b"\r\n\r\n" + body


def _another_line(lines: list[bytes], body: bytes, rng: random.Random) -> bytes:
    lines.insert(rng.randrange(1, len(lines)), rng.choice(_LINES))
    return _joined(lines, body)


def _another_start(lines: list[bytes], body: bytes, rng: random.Random) -> bytes:
    return _joined([rng.choice(_STARTS), *lines[1:]], body)


def _wrong_chunks(lines: list[bytes], body: bytes, rng: random.Random) -> bytes:
    size = rng.choice((b"%x" % len(body), b"-1", b"fffffffffffffffff", b"zz", b"%x;a=b" % len(body), b""))
    lines[4] = b"Transfer-Encoding: chunked"
    return _joined(lines, size + b"\r\n" + body + rng.choice((b"\r\n0\r\n\r\n", b"0", b"")))


def _wrong_length(lines: list[bytes], body: bytes, rng: random.Random) -> bytes:
    lines[4] = b"Content-Length: " + rng.choice(
        (b"0", b"-1", b"1e3", b"99999999999999999999", b"4, 4", b"\xff")
    )
    return _joined(lines, body)


def _cut_off(lines: list[bytes], body: bytes, rng: random.Random) -> bytes:
    whole = _joined(lines, body)
    return whole[: rng.randrange(len(whole))]


def _two_at_once(lines: list[bytes], body: bytes, rng: random.Random) -> bytes:
    first = _joined([*lines[:5], b"Connection: keep-alive"], body)
    return first + _corrupt_head(lines, body, rng)


_BREAKS: tuple[Callable[[list[bytes], bytes, random.Random], bytes], ...] = (
    _corrupt_head,
    _another_line,
    _another_start,
    _wrong_chunks,
    _wrong_length,
    _cut_off,
    _two_at_once,
    lambda _, __, rng: rng.randbytes(rng.randrange(1, 2_000)),
)
_LINES = (
    b"X-A: " + b"a" * 70_000,
    b"X-Resolute-Trace: \xff",
    b"Content-Length: 3",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Content-Encoding: gzip",
    b"Connect-Content-Encoding: zstd",
    b"Expect: 100-continue",
    b"Upgrade: h2c",
    b"Upgrade: websocket",
    b"Host: other",
    b"Host",
    b": empty",
    b" folded",
    b"Connect-Timeout-Ms: 99999999999999999999",
    b"Connect-Protocol-Version: 7",
    b"Grpc-Timeout: 1x",
    b"Origin: null",
    b"Cookie: " + b"a=b; " * 5_000,
    b"Content-Type: application/grpc-web-text",
    b"X-Forwarded-For: \x00, [::1",
)
_STARTS = (
    b"GET / HTTP/1.1",
    b"GET /assets/%2e%2e/%2e%2e/etc/passwd HTTP/1.1",
    b"GET /sign-in?code=%ff HTTP/1.1",
    b"GET http://[::1/ HTTP/1.1",
    b"CONNECT a:1 HTTP/1.1",
    b"OPTIONS * HTTP/1.1",
    b"TRACE / HTTP/1.1",
    b"POST /sign-in HTTP/1.1",
    b"POST /sign-out HTTP/1.1",
    b"DELETE /openapi.json HTTP/1.1",
    b"GET /%00 HTTP/1.1",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1",
    b"GET /api/v1/experiments HTTP/1.1",
    b"GET / HTTP/0.9",
    b"GET / HTTP/9.9",
    b"PRI * HTTP/2.0",
    b"",
    b"\xff\xfe",
)


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, stream) + content


def _odd_frame(data: bytes, rng: random.Random) -> bytes:
    content = rng.choice(
        (b"", rng.randbytes(rng.randrange(64)), data[: 1 << 14], b"\x82\x86\x84\x41\x8a" * 20)
    )
    stream = rng.choice((0, 1, 1, 3, 2, 2**31 - 1, 2**32 - 1))
    return _frame(rng.randrange(12), rng.choice((0, 1, 4, 5, 8, 0x25, 0xFF)), stream, content)
