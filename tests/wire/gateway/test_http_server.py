"""The port that HTTP is served on."""

from __future__ import annotations

import asyncio
import socket

from support.services.gateway import need_http

need_http()

from resolute_gateway.web.http_server import listen  # noqa: E402 - skipped where HTTP cannot be served


def test_parts_of_a_response_do_not_wait_for_each_other() -> None:
    async def scenario() -> int:
        undelayed: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            undelayed.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        opened = listen("127.0.0.1", 0)
        async with await asyncio.start_server(accepted, sock=opened):
            _, writer = await asyncio.open_connection(*opened.getsockname())
            found = await asyncio.wait_for(undelayed, 60)
            writer.close()
            await writer.wait_closed()
        return found

    assert asyncio.run(scenario())
