"""Connections of HTTP: their options, and clients that hold them without a use."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
from ipaddress import ip_network
from pathlib import Path

import grpc
import pytest
from support.certificates import Authority
from support.services.gateway import gateway, need_http

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute_serving.server import grpc_server
from resolute_serving.tls import ServerTls

need_http()

# Skipped where HTTP cannot be served.
from resolute_gateway.listening import connection, http_server, listening_socket  # noqa: E402
from resolute_gateway.listening.listening_socket import ConnectionLimits, ListeningSocket, listen  # noqa: E402

_NOBODY = "127.0.0.1:1"
"""An address where no services are: what is tried here does not come that far."""


def _limits(total: int = 100, of_address: int = 50, *proxies: str) -> ConnectionLimits:
    return ConnectionLimits(
        total=total, of_address=of_address, proxies=[ip_network(proxy) for proxy in proxies]
    )


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await asyncio.wait_for(reader.read(), 60)
    except ConnectionResetError:
        return b""


def test_parts_of_a_response_do_not_wait_for_each_other() -> None:
    async def scenario() -> int:
        undelayed: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            opened = writer.get_extra_info("socket")
            undelayed.set_result(opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        opened = listen("127.0.0.1", 0, limits=_limits(), clock=SYSTEM_CLOCK)
        async with await asyncio.start_server(accepted, sock=opened):
            _, writer = await asyncio.open_connection(*opened.getsockname())
            answer = await asyncio.wait_for(undelayed, 60)
            writer.close()
            await writer.wait_closed()
        return answer

    assert asyncio.run(scenario())


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", id="headers that never end"),
        pytest.param(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT", id="a second request"),
        pytest.param(
            b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
            id="a body after its answer",
        ),
    ],
)
def test_a_client_that_never_finishes_is_disconnected(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEADER_SECONDS", 0.2)

    async def scenario() -> None:
        async with gateway(_NOBODY) as client:
            reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
            writer.write(sent)
            await _rest(reader)  # which ends with the connection
            writer.close()

    asyncio.run(scenario())


def test_a_client_that_never_finishes_its_tls_handshake_is_disconnected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "HANDSHAKE_SECONDS", 0.2)
    tls = ServerTls(Authority.create(tmp_path).issue(tmp_path))

    async def scenario() -> bytes:
        async with gateway(_NOBODY, tls=tls) as client:
            reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
            # Less than the minute that asyncio gives by itself.
            rest = await asyncio.wait_for(reader.read(), 30)
            writer.close()
        return rest

    assert asyncio.run(scenario()) == b""


def test_headers_have_a_limit() -> None:
    async def scenario() -> bytes:
        async with gateway(_NOBODY) as client:
            reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 100_000)
            answer = await _rest(reader)
            writer.close()
        return answer

    assert asyncio.run(scenario()).startswith(b"HTTP/1.1 431 ")


def test_a_client_that_reads_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UNREAD_SECONDS", 0.2)

    async def scenario() -> None:
        async with gateway(_NOBODY) as client:
            reader, writer = await asyncio.open_connection("127.0.0.1", client.port, limit=1)
            writer.write(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 60)
            while not reader.at_eof() and reader.exception() is None:
                await asyncio.sleep(0.05)
                try:
                    writer.write(b" ")
                    await writer.drain()
                except ConnectionError:
                    return

    asyncio.run(asyncio.wait_for(scenario(), 60))


def _closed(client: socket.socket) -> bool:
    client.settimeout(5)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def _accept_all(opened: ListeningSocket) -> list[socket.socket]:
    accepted = []
    while True:
        try:
            accepted.append(opened.accept()[0])
        except BlockingIOError:
            return accepted


def _connect(opened: ListeningSocket, source: str) -> socket.socket:
    return socket.create_connection(opened.getsockname(), 5, source_address=(source, 0))


@pytest.mark.parametrize(
    ("limits", "first", "second"),
    [
        pytest.param(_limits(100, 3), 3, 2, id="of an address"),
        pytest.param(_limits(4, 3), 3, 1, id="of all"),
        pytest.param(_limits(100, 3, "127.0.0.2/32"), 5, 2, id="a proxy"),
    ],
)
def test_connections_beyond_the_limits_are_closed(limits: ConnectionLimits, first: int, second: int) -> None:
    with listen("127.0.0.1", 0, limits=limits, clock=SYSTEM_CLOCK) as opened:
        clients = [_connect(opened, "127.0.0.2") for _ in range(5)]
        held = _accept_all(opened)
        others = [_connect(opened, "127.0.0.3") for _ in range(2)]
        held_of_others = _accept_all(opened)
        assert (len(held), len(held_of_others)) == (first, second)
        assert all(_closed(client) for client in clients[first:])

        for connected in held:
            connected.close()
        again = [_connect(opened, "127.0.0.2") for _ in range(5)]
        held_again = _accept_all(opened)
        assert len(held_again) == min(first, limits.total - second), "closed ones do not count"
        for opened_here in (*clients, *others, *again, *held_of_others, *held_again):
            opened_here.close()


def test_a_process_without_descriptors_closes_connections_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(listening_socket._log, "warning", lambda message, **_: warnings.append(message))
    with listen("127.0.0.1", 0, limits=_limits(), clock=SYSTEM_CLOCK) as opened:
        clients = [_connect(opened, "127.0.0.2") for _ in range(5)]
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        used = {int(name.name) for name in Path("/proc/self/fd").iterdir()}
        fillers = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(used) + 1, hard))
        try:
            while True:
                try:
                    fillers.append(os.open(os.devnull, os.O_RDONLY))
                except OSError:
                    break
            assert _accept_all(opened) == []
        finally:
            for filler in fillers:
                os.close(filler)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert all(_closed(client) for client in clients)
        assert len(warnings) == 1

        clients.append(_connect(opened, "127.0.0.2"))
        held = _accept_all(opened)
        assert len(held) == 1
        for opened_here in (*clients, *held):
            opened_here.close()


@pytest.mark.parametrize(("servers", "closed"), [(1, 20), (2, 25)])
def test_grpc_takes_half_of_the_descriptors_for_all_servers_of_a_process(
    monkeypatch: pytest.MonkeyPatch, servers: int, closed: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (20, 20))

    async def scenario() -> int:
        server = grpc.aio.server(options=grpc_server.server_options(servers=servers))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        clients = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(30)]
        ended = sum(await asyncio.gather(*(asyncio.to_thread(_ended, client) for client in clients)))
        for client in clients:
            client.close()
        await server.stop(0)
        return ended

    assert asyncio.run(scenario()) == closed


def _ended(client: socket.socket) -> bool:
    """Whether a connection was closed by the server; it says something first where it was not."""
    client.settimeout(30)
    try:
        client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
        return client.recv(1) == b""
    except (ConnectionResetError, BrokenPipeError):
        return True
