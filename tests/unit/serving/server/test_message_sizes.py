"""Clients take answers as long as servers send them."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from resolute.contracts.calls.message_sizes import MAX_ANSWER_BYTES
from resolute.rpc.channel import open_channel
from resolute_serving.server.grpc_server import server_options

LONG = MAX_ANSWER_BYTES - 1024


async def answer(request: bytes, context: object) -> bytes:
    return b"x" * LONG


def test_an_answer_of_many_megabytes_arrives() -> None:
    def ask(port: int) -> int:
        with open_channel(f"127.0.0.1:{port}") as channel:
            call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/x.Y/Z")
            return len(call(b"", timeout=60))

    async def scenario() -> int:
        server = grpc.aio.server(options=server_options())
        handler: Any = grpc.unary_unary_rpc_method_handler(answer)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("x.Y", {"Z": handler}),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            return await asyncio.to_thread(ask, port)
        finally:
            await server.stop(0)

    assert asyncio.run(scenario()) == LONG
