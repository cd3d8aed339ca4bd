"""Messages to and from JSON. Large ones are converted in a thread: a hundred thousand points take seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from resolute.errors import InvalidArgumentError

T = TypeVar("T")
INLINE_BYTES = 4096
"""Larger messages are converted in the thread."""


class JsonConversion:
    """Converts messages. To be closed after use.

    One thread: conversion is Python code, and each more of them would slow the event loop further.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gateway-json")

    async def to_binary(self, data: bytes, kind: Descriptor) -> bytes:
        """Reads a message from JSON. Unknown fields are an error: a misspelt filter must not be ignored.

        Raises:
            InvalidArgumentError: It is not JSON, or not of this kind of message.
        """
        return await self._run(_to_binary, data, kind)

    async def to_json(self, data: bytes, kind: Descriptor) -> bytes:
        """Writes a binary message as JSON."""
        return await self._run(_to_json, data, kind)

    def close(self) -> None:
        """Ends the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self, convert: Callable[[bytes, Descriptor], T], data: bytes, kind: Descriptor) -> T:
        if len(data) <= INLINE_BYTES:
            return convert(data, kind)
        return await asyncio.get_running_loop().run_in_executor(self._thread, convert, data, kind)


def _to_binary(data: bytes, kind: Descriptor) -> bytes:
    message = GetMessageClass(kind)()
    try:
        # A POST without a body asks with an empty message.
        json_format.Parse(data or b"{}", message)
    except (json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidArgumentError(f"the body is not a {kind.name} in JSON: {str(error)[:500]}") from error
    return bytes(message.SerializeToString())


def _to_json(data: bytes, kind: Descriptor) -> bytes:
    message = GetMessageClass(kind)()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise InvalidArgumentError(f"the message is not a {kind.name}: {error}") from error
    return json_format.MessageToJson(message, indent=None, ensure_ascii=False).encode()
