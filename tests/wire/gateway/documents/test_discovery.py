"""Clients that know the URL of a gateway learn where gRPC is."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.services.gateway import gateway
from support.services.stand_ins.scripted_grpc import scripted_grpc

from resolute.client.connection.endpoint import find_endpoint


def test_the_url_of_a_gateway_leads_to_grpc_and_the_port_of_grpc_to_itself(tmp_path: Path) -> None:
    variables = {"RESOLUTE_HOME": str(tmp_path)}

    async def found(master: str, **more: str) -> str:
        endpoint = await asyncio.to_thread(find_endpoint, master, environment={**variables, **more})
        return endpoint.address

    async def scenario() -> None:
        async with scripted_grpc() as address:
            async with gateway(address) as http:
                assert await found(f"http://127.0.0.1:{http.port}/") == address
                assert await found("", RESOLUTE_MASTER=f"http://127.0.0.1:{http.port}") == address
                assert await found(f"http://localhost:{http.port}") == address.replace(
                    "127.0.0.1", "localhost"
                )
            async with gateway(address, grpc_address="grpc.example:443") as http:
                assert await found(f"http://127.0.0.1:{http.port}") == "grpc.example:443"
            # As scripts for other platforms have it.
            assert await found(f"http://{address}") == address

    asyncio.run(asyncio.wait_for(scenario(), 60))
