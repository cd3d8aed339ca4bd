"""The HTTP gateway of a cluster that cannot be loaded."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from resolute_embedded.network.http import ClusterHttp
from resolute_gateway.settings import HttpSettings
from resolute_serving.auth.forwarded_peers import ForwardedPeers

http_gateway = pytest.importorskip("resolute_gateway.http_gateway")


def test_a_gateway_that_cannot_be_loaded_lets_nobody_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("no memory")

    monkeypatch.setattr(http_gateway, "HttpGateway", fails)

    async def body() -> None:
        http = ClusterHttp(
            HttpSettings(cluster_id="c", grpc_port=1),
            address="127.0.0.1:1",
            opened=socket.create_server(("127.0.0.1", 0)),
            peers=ForwardedPeers(),
            missing="",
        )
        port = int(http.url.rpartition(":")[2])
        http.start()
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.setblocking(False)
            with pytest.raises(ConnectionResetError):
                await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1), 30)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=30)
        assert http.url == ""
        assert http.announcement == ["HTTP: not served, it cannot be loaded: no memory"]
        await http.stop()

    asyncio.run(body())
