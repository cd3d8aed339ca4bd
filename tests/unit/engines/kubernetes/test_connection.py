"""What is made of an API server's answers that are too large, cut short, or another program's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

pytest.importorskip("kubernetes_asyncio")

from kubernetes_asyncio.client import ApiClient, Configuration

from resolute.errors import DataLossError, PermissionDeniedError, UnavailableError
from resolute_engines.kubernetes.connection import ExpiredError, KubernetesApi

PODS = "/api/v1/namespaces/default/pods"
EVENT = json.dumps({"type": "ADDED", "object": {"metadata": {"resourceVersion": "7"}}})
ANSWER_BYTES = 1 << 20


@asynccontextmanager
async def answering(body: str, *, status: int = 200) -> AsyncIterator[KubernetesApi]:
    """An API server that answers everything with one text."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=body, status=status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{runner.addresses[0][1]}"
    api = KubernetesApi(ApiClient(configuration), answer_bytes=ANSWER_BYTES)
    try:
        yield api
    finally:
        await api.close()
        await runner.cleanup()


async def get(api: KubernetesApi) -> None:
    await api.get(PODS)


async def stream(api: KubernetesApi) -> None:
    async for _ in api.stream(PODS, seconds=1):
        pass


@pytest.mark.parametrize(
    ("call", "body", "status", "error", "words"),
    [
        (get, json.dumps({"items": "x" * ANSWER_BYTES}), 200, DataLossError, "with more than 1048576 bytes"),
        (get, "<html>\nproxy\n</html>", 200, DataLossError, "is not an object"),
        (get, "<html>\nproxy\n</html>", 502, UnavailableError, "proxy"),
        (stream, "<html>\nproxy\n</html>", 502, UnavailableError, "proxy"),
        (stream, EVENT + '\n{"type": "ADD', 200, DataLossError, "is not an object"),
        (stream, '{"type": "ADDED", "x": "' + "y" * (5 << 20), 200, DataLossError, "longer than any object"),
        (stream, '{"message": "not you"}', 403, PermissionDeniedError, "not you"),
        (stream, '{"type": "ERROR", "object": {"code": 410, "message": "old"}}', 200, ExpiredError, "old"),
    ],
)
def test_an_answer_that_cannot_be_taken_is_an_error(
    call: Callable[[KubernetesApi], Awaitable[None]],
    body: str,
    status: int,
    error: type[Exception],
    words: str,
) -> None:
    async def scenario() -> None:
        async with answering(body, status=status) as api:
            with pytest.raises(error, match=words):
                await call(api)

    asyncio.run(scenario())
