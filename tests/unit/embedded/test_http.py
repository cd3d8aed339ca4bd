"""The HTTP gateway of a cluster: one without a page, and one that cannot be loaded."""

from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from resolute_embedded.network.http import ClusterHttp
from resolute_gateway import requirements
from resolute_gateway.settings import HttpSettings
from resolute_serving.auth.forwarded_peers import ForwardedPeers

http_gateway = pytest.importorskip("resolute_gateway.http_gateway")


def test_without_the_files_of_the_page_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def announced() -> list[str]:
        http = ClusterHttp(
            HttpSettings(cluster_id="c", grpc_port=1),
            address="127.0.0.1:1",
            opened=socket.create_server(("127.0.0.1", 0)),
            peers=ForwardedPeers(),
            missing="",
        )
        lines = http.announcement
        await http.stop()
        return lines

    monkeypatch.setattr(requirements, "BUILT", tmp_path)
    (line,) = asyncio.run(announced())
    assert re.fullmatch(
        r"HTTP: http://127\.0\.0\.1:\d+, for programs; there is no page: .* `make page` builds .*", line
    )
    (tmp_path / "index.html").touch()
    (line,) = asyncio.run(announced())
    assert re.fullmatch(r"HTTP: http://127\.0\.0\.1:\d+", line)


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
