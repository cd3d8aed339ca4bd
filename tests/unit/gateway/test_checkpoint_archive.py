"""Downloads of checkpoints whose files turn out not to be what was committed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from starlette.responses import Response, StreamingResponse
from starlette.types import Message

from resolute_gateway.backends import Backends
from resolute_gateway.web.downloads.checkpoint_archive import CheckpointArchive


@pytest.mark.parametrize(
    "failure",
    [
        OSError("'model.pt' is not what was committed"),
        grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata()),
    ],
)
def test_a_download_ends_before_its_length_without_being_a_defect(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def content() -> AsyncIterator[bytes]:
        yield b"head"
        raise failure

    async def response(*_: object) -> Response:
        return StreamingResponse(content(), headers={"content-length": "100"})

    sent: list[Message] = []

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    async def body() -> None:
        archive = CheckpointArchive(Backends({}), authorized=lambda scope: scope)
        monkeypatch.setattr(archive, "_response", response)
        scope: dict[str, Any] = {"type": "http", "path": "/checkpoints/x.tar", "headers": []}
        await archive(scope, receive, send)

    asyncio.run(asyncio.wait_for(body(), 60))
    assert [message.get("body") for message in sent] == [None, b"head"]
    assert sent[-1]["more_body"]
