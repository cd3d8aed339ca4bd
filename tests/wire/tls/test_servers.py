"""Ports over TLS: who is trusted, who gets in, and certificates that are replaced while a server runs."""

from __future__ import annotations

import asyncio
import ssl
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs
from support.certificates import Authority
from support.static_keys import StaticKeys

from resolute.contracts.calls.tls import ClientTls, aio_channel
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    UnauthenticatedError,
    UnavailableError,
)
from resolute.rpc.channel import open_channel
from resolute_serving.auth.refusals import Refusals
from resolute_serving.auth.tokens import RevokedTokens, TokenVerifier
from resolute_serving.server import grpc_server
from resolute_serving.server.channels.peers import Peers
from resolute_serving.server.grpc_server import Server, ServerSettings
from resolute_serving.tls import Listener, ServerTls, TlsFiles, client_tls, server_tls

ASKED = health_pb2.HealthCheckRequest(service="")


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))


@asynccontextmanager
async def served(settings: ServerSettings) -> AsyncIterator[Server]:
    """A server without services: its health is public."""
    verifier = TokenVerifier(StaticKeys({}, RevokedTokens()), cluster_id="c", clock=SYSTEM_CLOCK)
    server = Server([], verifier=verifier, settings=settings, refusals=Refusals(SYSTEM_CLOCK))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def ask(port: int, tls: ClientTls | None) -> str:
    """Makes a call as the SDK does; gives the answer or the error."""
    with open_channel(f"127.0.0.1:{port}", tls=tls) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(ASKED, timeout=60)
        except UnavailableError as error:
            return str(error)
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))


def protected(files: TlsFiles) -> ServerSettings:
    return ServerSettings(tls=ServerTls(files), grace=0)


def test_a_client_reaches_whom_it_trusts_and_says_in_one_line_why_not(tmp_path: Path) -> None:
    ours, others = Authority.create(tmp_path), Authority.create(tmp_path, name="other")

    async def scenario() -> None:
        async with served(protected(ours.issue(tmp_path))) as server:
            said = {
                "trusted": await asyncio.to_thread(ask, server.port, ours.trusted()),
                "other": await asyncio.to_thread(ask, server.port, others.trusted()),
                "public": await asyncio.to_thread(ask, server.port, ClientTls()),
                "name": await asyncio.to_thread(ask, server.port, ours.trusted(server_name="elsewhere")),
                "plain": await asyncio.to_thread(ask, server.port, None),
            }
        async with served(ServerSettings(grace=0)) as plain:
            said["to plain"] = await asyncio.to_thread(ask, plain.port, ours.trusted())
        assert said["trusted"] == "SERVING"
        assert "(its certificate is not trusted)" in said["other"]
        assert "(its certificate is not trusted)" in said["public"]
        assert "(its certificate is for another name)" in said["name"]
        assert "cannot reach" in said["plain"]
        assert "(one side expects TLS and the other does not)" in said["to plain"]
        assert not any("\n" in text for text in said.values())

    run(scenario)


def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    ours = Authority.create(tmp_path)

    async def scenario() -> None:
        async with served(protected(ours.issue(tmp_path, expired=True))) as server:
            said = await asyncio.to_thread(ask, server.port, ours.trusted())
        assert "(its certificate has expired)" in said

    run(scenario)


def test_a_certificate_for_another_name_is_taken_where_the_client_names_it(tmp_path: Path) -> None:
    ours = Authority.create(tmp_path)

    async def scenario() -> None:
        async with served(protected(ours.issue(tmp_path, name="cluster.example"))) as server:
            named = ours.trusted(server_name="cluster.example")
            assert await asyncio.to_thread(ask, server.port, named) == "SERVING"

    run(scenario)


def test_new_connections_get_a_new_certificate_without_a_restart(tmp_path: Path) -> None:
    old, new = Authority.create(tmp_path), Authority.create(tmp_path, name="new")

    async def scenario() -> None:
        async with served(protected(old.issue(tmp_path))) as server:
            assert await asyncio.to_thread(ask, server.port, old.trusted()) == "SERVING"
            async with aio_channel(f"localhost:{server.port}", tls=old.trusted(), options=()) as open_before:
                health = health_pb2_grpc.HealthStub(open_before)
                await health.Check(ASKED, timeout=60)
                # A key that does not fit yet changes nothing.
                files = new.issue(tmp_path, name="unused")
                (tmp_path / "localhost-key.pem").write_bytes(files.key.read_bytes())
                assert await asyncio.to_thread(ask, server.port, old.trusted()) == "SERVING"
                new.issue(tmp_path)
                assert await asyncio.to_thread(ask, server.port, new.trusted()) == "SERVING"
                assert "not trusted" in await asyncio.to_thread(ask, server.port, old.trusted())
                await health.Check(ASKED, timeout=60)

    run(scenario)


def test_a_change_of_the_files_is_tried_once_however_many_connections_come(tmp_path: Path) -> None:
    ours = Authority.create(tmp_path)
    files = ours.issue(tmp_path)
    key = files.key.read_bytes()
    server = ServerTls(files)
    first = server.current()
    with capture_logs() as said:
        files.key.unlink()
        kept = [server.current() for _ in range(3)]
        files.key.write_bytes(b"no key")
        kept += [server.current() for _ in range(3)]
        assert all(one is first for one in kept)
        files.key.write_bytes(key)
        files.key.chmod(0o600)
        assert server.current() is not first
    warned = [line["error"] for line in said if line["log_level"] == "warning"]
    assert len(warned) == 2, said
    assert "cannot read" in warned[0]
    assert "not a PEM file" in warned[1]


def test_a_service_lets_in_who_shows_a_certificate_of_the_cluster(tmp_path: Path) -> None:
    ours, others = Authority.create(tmp_path), Authority.create(tmp_path, name="other")
    files = ours.issue(tmp_path)
    settings = {
        "RESOLUTE_TLS_CERT": str(files.certificate),
        "RESOLUTE_TLS_KEY": str(files.key),
        "RESOLUTE_TLS_CA": str(ours.file),
        "RESOLUTE_TLS_CLIENT_CA": str(ours.file),
    }
    stranger = others.issue(tmp_path, name="stranger")

    async def scenario() -> None:
        async with served(ServerSettings(tls=server_tls(settings), grace=0)) as server:
            peers = Peers({"*": f"127.0.0.1:{server.port}"}, token=lambda: "", tls=client_tls(settings))
            # It gets in, and is then asked for its token.
            with pytest.raises(UnauthenticatedError):
                await health_pb2_grpc.HealthStub(peers.channel("metrics")).Check(ASKED, timeout=60)
            await peers.close()
            assert await asyncio.to_thread(ask, server.port, ours.trusted()) != "SERVING"
            with_another = ours.trusted(own=stranger)
            assert await asyncio.to_thread(ask, server.port, with_another) != "SERVING"

    run(scenario)


def test_numbers_for_prometheus_are_served_over_tls(tmp_path: Path) -> None:
    from support.ports import free_port

    ours, new = Authority.create(tmp_path), Authority.create(tmp_path, name="new")
    settings = ServerSettings(tls=ServerTls(ours.issue(tmp_path)), grace=0, metrics_port=free_port())
    url = f"https://127.0.0.1:{settings.metrics_port}/metrics"

    def read(tls: ClientTls) -> int:
        with urllib.request.urlopen(url, context=tls.context(), timeout=60) as response:
            return int(response.status)

    async def scenario() -> None:
        async with served(settings):
            assert await asyncio.to_thread(read, ours.trusted()) == 200
            new.issue(tmp_path)
            assert await asyncio.to_thread(read, new.trusted()) == 200

    run(scenario)


def test_other_machines_reach_a_plain_port_only_where_somebody_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = grpc.aio.server()
        with pytest.raises(FailedPreconditionError, match="RESOLUTE_INSECURE=1"):
            Listener(host="0.0.0.0").add_to(server)
        assert Listener(host="0.0.0.0", insecure=True).add_to(server)
        files = Authority.create(tmp_path).issue(tmp_path)
        assert Listener(host="0.0.0.0", tls=ServerTls(files)).add_to(server)
        assert Listener(host="::1").add_to(server)
        assert Listener(host="localhost").add_to(server)
        await server.stop(0)

    run(scenario)


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path)
    files, other = authority.issue(tmp_path), authority.issue(tmp_path, name="other-server")
    files.key.chmod(0o644)
    with pytest.raises(FailedPreconditionError, match=r"others may use the key .*chmod 600"):
        ServerTls(files)
    with pytest.raises(FailedPreconditionError, match="not a certificate and its key"):
        ServerTls(TlsFiles(certificate=files.certificate, key=other.key))
    with pytest.raises(FailedPreconditionError, match=r"cannot read .*gone"):
        ServerTls(TlsFiles(certificate=tmp_path / "gone", key=other.key))
    (tmp_path / "text").write_text("hello")
    with pytest.raises(FailedPreconditionError, match="is not a PEM file"):
        ClientTls.read(tmp_path / "text")
    with pytest.raises(InvalidArgumentError, match="set both"):
        server_tls({"RESOLUTE_TLS_CERT": "x"})


def test_old_versions_of_tls_are_not_spoken(tmp_path: Path) -> None:
    context = ServerTls(Authority.create(tmp_path).issue(tmp_path)).context()
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_connection_that_never_finishes_its_handshake_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without the option, gRPC waits for two minutes.
    options = dict(grpc_server._OPTIONS)
    assert "grpc.server_handshake_timeout_ms" in options
    monkeypatch.setattr(
        grpc_server, "_OPTIONS", tuple({**options, "grpc.server_handshake_timeout_ms": 200}.items())
    )

    async def scenario() -> None:
        async with served(protected(Authority.create(tmp_path).issue(tmp_path))) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            assert await asyncio.wait_for(reader.read(), 30) == b""
            writer.close()

    run(scenario)
