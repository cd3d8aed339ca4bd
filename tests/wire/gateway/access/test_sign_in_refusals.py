"""What a browser is told when the service that knows the users refuses a sign-in, or does not answer."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from urllib.parse import urlencode

import grpc
import pytest
from support.services.gateway import gateway, need_http

need_http()

from resolute_gateway.sign_in.access_calls import Session  # noqa: E402 - needs what was asked for above


def refusing(code: grpc.StatusCode) -> grpc.GenericRpcHandler:
    """A service that refuses every login."""

    async def login(_: bytes, context: Any) -> bytes:
        await context.abort(code, "the reason")
        raise AssertionError

    methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "Login": grpc.unary_unary_rpc_method_handler(login)
    }
    return grpc.method_handlers_generic_handler("resolute.api.experiments.v1.AccessService", methods)


@pytest.mark.parametrize(
    ("code", "status", "message", "word"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, 400, "the reason", "refusal"),
        (grpc.StatusCode.PERMISSION_DENIED, 403, "the reason", "refusal"),
        (grpc.StatusCode.FAILED_PRECONDITION, 400, "the reason", "refusal"),
        (grpc.StatusCode.UNAVAILABLE, 503, "does not answer", "silence"),
    ],
)
def test_only_a_service_that_does_not_answer_is_an_outage(
    code: grpc.StatusCode, status: int, message: str, word: str
) -> None:
    async def scenario() -> None:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((refusing(code),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            async with gateway(f"127.0.0.1:{port}") as http:
                sent = {
                    "content-type": "application/x-www-form-urlencoded",
                    "origin": f"http://127.0.0.1:{http.port}",
                }
                body = urlencode({"user": "ada", "password": "guess"}).encode()
                answer = await http.request("POST", "/sign-in", body=body, headers=sent)
                assert answer.status == status
                assert message in answer.json()["message"]
                page = {**sent, "accept": "text/html"}
                led_back = await http.request("POST", "/sign-in", body=body, headers=page)
                assert led_back.headers["location"] == f"sign-in?refused={word}"
        finally:
            await server.stop(None)

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_browser_keeps_no_session_for_longer_than_a_week() -> None:
    assert Session("t", int(time.time()) + 365 * 86_400).seconds == 7 * 86_400
    assert Session("t", int(time.time()) - 10).seconds == 0
