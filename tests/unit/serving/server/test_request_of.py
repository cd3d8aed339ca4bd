"""Tests of the request that a call awaits itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from resolute.errors import InvalidArgumentError
from resolute_serving.server.calls import request_of


def test_a_stream_is_closed_once_its_request_is_read() -> None:
    closed = False

    async def requests() -> AsyncIterator[bytes]:
        nonlocal closed
        try:
            yield b"first"
            yield b"second"
        finally:
            closed = True

    async def scenario() -> tuple[bytes, bool]:
        # The name keeps the stream: nothing but `request_of` closes it.
        stream = requests()
        return await request_of(stream), closed

    assert asyncio.run(scenario()) == (b"first", True)


def test_a_stream_without_a_request_is_refused() -> None:
    async def requests() -> AsyncIterator[bytes]:
        for request in list[bytes]():
            yield request

    with pytest.raises(InvalidArgumentError, match="has no request"):
        asyncio.run(request_of(requests()))
