"""Reads HTTP answers of daemons up to a limit of size."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp

_READ_BYTES = 64 * 1024


async def read_at_most(response: aiohttp.ClientResponse, most: int) -> bytes | None:
    """Reads an answer; returns None if it is larger than so many bytes."""
    content = bytearray()
    async for piece in response.content.iter_chunked(_READ_BYTES):
        content += piece
        if len(content) > most:
            return None
    return bytes(content)
