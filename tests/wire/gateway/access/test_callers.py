"""Services know who calls a gateway: sign-ins are limited, and refusals recorded, by that address."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import grpc
import pytest
from support.services.access import calls
from support.services.gateway import GatewayClient, gateway
from support.services.in_process import Running, serving

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1 import access_service_pb2_grpc
from resolute.errors import InvalidArgumentError
from resolute_experiments.blueprint import BLUEPRINT
from resolute_gateway.backends import Backends
from resolute_gateway.grpc_router import GrpcRouter
from resolute_serving.auth.forwarded_peers import PEER_HEADER, ForwardedPeers

_KEY = "k" * 32
_PASSWORD = "a long pass phrase"
_ATTEMPTS = 31
_LOGIN = "/resolute.api.experiments.v1.AccessService/Login"
_Scenario = Callable[[Running, GatewayClient], Awaitable[None]]


def _run(tmp_path: Path, scenario: _Scenario, **settings: Any) -> None:
    async def serve() -> None:
        async with (
            serving([BLUEPRINT], tmp_path, gateway_key=_KEY) as running,
            gateway(running.address, key=_KEY, **settings) as client,
        ):
            async with calls(running, running.user_token()) as admin:
                victim = await admin.user("victim")
                request = pb2.SetPasswordRequest(user_id=victim.user_id, password=_PASSWORD)
                await admin.access.SetPassword(request)
            await scenario(running, client)

    asyncio.run(asyncio.wait_for(serve(), 120))


@dataclass(frozen=True)
class _Client:
    """A client of HTTP at an address of this machine, and what it says of itself."""

    port: int
    source: str
    headers: Mapping[str, str]

    def login(self, name: str, password: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, 60, source_address=(self.source, 0))
        body = json.dumps({"userName": name, "password": password})
        connection.request("POST", _LOGIN, body, {"content-type": "application/json", **self.headers})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    def guess(self) -> set[int]:
        return {self.login(f"n{number}", "wrong") for number in range(_ATTEMPTS)}

    def sign_in(self, name: str, password: str, *, cookie: str = "") -> http.client.HTTPResponse:
        """Sends the form of the page."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, 60, source_address=(self.source, 0))
        own = {"origin": f"http://127.0.0.1:{self.port}", "content-type": "application/x-www-form-urlencoded"}
        body = urlencode({"user": name, "password": password})
        connection.request("POST", "/sign-in", body, {**own, "cookie": cookie, **self.headers})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer


async def _recorded(running: Running) -> set[str]:
    async with calls(running, running.user_token()) as admin:
        for _ in range(100):
            request = pb2.ListAuditRowsRequest(page_size=100, actions=["login_failed"])
            rows = (await admin.access.ListAuditRows(request)).rows
            if rows:
                return {row.detail.map_value.fields["peer"].string_value for row in rows}
            await asyncio.sleep(0.1)
    return set()


@pytest.mark.usefixtures("cheap_hashes")
@pytest.mark.parametrize(
    ("stranger", "victim", "settings", "recorded"),
    [
        pytest.param(("127.0.0.2", {}), ("127.0.0.3", {}), {}, "127.0.0.2", id="addresses"),
        pytest.param(
            ("127.0.0.2", {"x-forwarded-for": "10.1.1.1"}),
            ("127.0.0.2", {"x-forwarded-for": "10.1.1.2"}),
            {"proxies": (ip_network("127.0.0.2"),)},
            "10.1.1.1",
            id="clients of a proxy",
        ),
        pytest.param(
            ("127.0.0.2", {PEER_HEADER: f"{_KEY[:-1]} ipv4:127.0.0.3:1", "x-forwarded-for": "127.0.0.3"}),
            ("127.0.0.3", {}),
            {},
            "127.0.0.2",
            id="a stranger who claims another address",
        ),
    ],
)
def test_wrong_passwords_of_one_address_limit_that_address(
    tmp_path: Path,
    stranger: tuple[str, Mapping[str, str]],
    victim: tuple[str, Mapping[str, str]],
    settings: Mapping[str, Any],
    recorded: str,
) -> None:
    async def scenario(running: Running, client: GatewayClient) -> None:
        assert await asyncio.to_thread(_Client(client.port, *stranger).guess) == {401, 429}
        assert await asyncio.to_thread(_Client(client.port, *victim).login, "victim", _PASSWORD) == 200
        assert await _recorded(running) == {recorded}

    _run(tmp_path, scenario, **settings)


@pytest.mark.usefixtures("cheap_hashes")
def test_the_page_limits_passwords_by_the_address_of_the_browser_and_by_the_name(tmp_path: Path) -> None:
    async def scenario(running: Running, client: GatewayClient) -> None:
        stranger, victim = _Client(client.port, "127.0.0.2", {}), _Client(client.port, "127.0.0.3", {})

        def visit() -> None:
            first = victim.sign_in("victim", _PASSWORD)
            assert (first.status, first.headers["location"]) == (303, "./")
            kept = [one.partition(";")[0] for one in first.headers.get_all("set-cookie") or ()]
            device = next(one for one in kept if "-device=" in one)
            tried = [stranger.sign_in("victim", f"wrong {number}").status for number in range(6)]
            assert tried == [401] * 5 + [429]
            # Others cannot lock a browser out that has signed in before, and can lock out one that has not.
            assert victim.sign_in("victim", _PASSWORD).status == 429
            assert victim.sign_in("victim", _PASSWORD, cookie=device).status == 303
            statuses = {stranger.sign_in(f"n{number}", "wrong").status for number in range(_ATTEMPTS)}
            assert statuses == {401, 429}
            assert stranger.sign_in("nobody", "wrong").status == 429
            assert victim.sign_in("nobody", "wrong").status == 401

        await asyncio.to_thread(visit)
        assert await _recorded(running) == {"127.0.0.2", "127.0.0.3"}

    _run(tmp_path, scenario)


@asynccontextmanager
async def _routed(address: str, key: str) -> AsyncIterator[grpc.aio.Channel]:
    server = grpc.aio.server()
    backends = Backends({"*": address}, peers=ForwardedPeers(key))
    server.add_generic_rpc_handlers((GrpcRouter(backends),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    await server.stop(0)
    await backends.close()


@pytest.mark.parametrize(
    ("key", "forged"),
    [
        pytest.param(_KEY, "", id="the cluster's key"),
        pytest.param("", f"{'x' * 32} ipv4:9.9.9.9:1", id="another key"),
        pytest.param("", " ipv4:9.9.9.9:1", id="no key"),
    ],
)
def test_nobody_without_the_key_names_a_peer(tmp_path: Path, key: str, forged: str) -> None:
    async def scenario(running: Running, _: GatewayClient) -> None:
        async with _routed(running.address, key) as channel:
            stub: Any = access_service_pb2_grpc.AccessServiceStub(channel)
            metadata = ((PEER_HEADER, forged),) if forged else ()
            with pytest.raises(grpc.aio.AioRpcError):
                await stub.Login(pb2.LoginRequest(user_name="victim"), metadata=metadata, timeout=60)
        assert await _recorded(running) == {"127.0.0.1"}

    _run(tmp_path, scenario)


@pytest.mark.parametrize("key", ["short", "with spaces in it, " * 3, "é" * 40])
def test_a_key_that_headers_cannot_carry_is_refused(key: str) -> None:
    with pytest.raises(InvalidArgumentError, match="RESOLUTE_GATEWAY_KEY"):
        ForwardedPeers(key)
