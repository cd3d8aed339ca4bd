"""The gateway by HTTPS: a call, and a certificate that is replaced while it runs."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from pathlib import Path

from support.certificates import Authority
from support.services.gateway import gateway
from support.services.stand_ins.scripted_grpc import scripted_grpc

from resolute.client.connection import trust
from resolute.contracts.calls.tls import ClientTls
from resolute_serving.tls import ServerTls


def test_new_connections_get_a_new_certificate(tmp_path: Path) -> None:
    old, new = Authority.create(tmp_path), Authority.create(tmp_path, name="new")
    tls = ServerTls(old.issue(tmp_path))

    def discovered(port: int, trusted: ClientTls) -> str:
        url = f"https://127.0.0.1:{port}/.well-known/resolute.json"
        with urllib.request.urlopen(url, context=trusted.context(), timeout=60) as response:
            return str(json.load(response)["grpc_address"])

    async def scenario() -> None:
        async with scripted_grpc() as address, gateway(address, tls=tls) as http:
            assert await asyncio.to_thread(discovered, http.port, old.trusted()) == address
            new.issue(tmp_path)
            assert await asyncio.to_thread(discovered, http.port, new.trusted()) == address
            place = f"127.0.0.1:{http.port}"
            assert not await asyncio.to_thread(trust.is_trusted, place, old.trusted())
            # What a person confirms is trusted itself, whoever signed it and whatever name it is for.
            shown = await asyncio.to_thread(trust.presented, place)
            assert shown.server_name == "localhost"
            assert await asyncio.to_thread(trust.is_trusted, place, shown)

    asyncio.run(asyncio.wait_for(scenario(), 60))
