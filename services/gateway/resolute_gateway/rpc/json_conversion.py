"""Converts messages to and from JSON. Their size is bounded first; processes convert large ones."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from google.protobuf.descriptor import Descriptor

from resolute.errors import InvalidArgumentError
from resolute_gateway.rpc.json_messages import binary_to_json, json_to_binary
from resolute_serving.bounds.limits import RequestLimits
from resolute_serving.workers.pool import WorkerPool
from resolute_serving.workers.process import WorkerLimits

INLINE_BYTES = 4096
"""Larger messages are converted in a process: `json_format` takes 10 µs a value, while the event loop would
stand still."""
MAX_MARKS = 250_000
"""Most commas and opening brackets of any request in JSON: two to three seconds of a processor."""
_COUNTED_AT_ONCE = 2**16
"""Bytes counted in one step: a body with too many marks is refused without the rest being counted."""
_MARKS_PER_ELEMENT = 4
_MARKS_OF_FIELDS = 1000
_LIMITS = WorkerLimits(cpu_seconds=10, memory_bytes=1 << 30)
_PROCESSES = 2


class JsonConversion:
    """Converts messages. Close it after use."""

    def __init__(self) -> None:
        self._readers = WorkerPool("gateway-from-json", processes=_PROCESSES, limits=_LIMITS)
        self._writer = WorkerPool("gateway-to-json", processes=1, limits=_LIMITS)
        self._one_answer = asyncio.Lock()
        self._one_of_caller: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def to_binary(self, data: bytes, kind: Descriptor, *, caller: str) -> bytes:
        """Reads a message from JSON. Unknown fields are an error: a misspelt filter must not be ignored.

        Args:
            data: The JSON, within its bounds.
            kind: What it is to be.
            caller: Whose turn a large one takes.

        Raises:
            InvalidArgumentError: It is not JSON, or not of this kind of message.
            QuotaError: Too many large ones of this caller, or of all, wait.
        """
        if len(data) <= INLINE_BYTES:
            return json_to_binary(data, *_place(kind))
        return await self._readers.run(json_to_binary, data, *_place(kind), caller=caller)

    async def to_json(self, data: bytes, kind: Descriptor, *, caller: str) -> bytes:
        """Writes a binary message as JSON. No large one is refused; each caller waits with one at a time.

        Args:
            data: The message.
            kind: What it is.
            caller: Whose turn a large one takes.
        """
        if len(data) <= INLINE_BYTES:
            return binary_to_json(data, *_place(kind))
        async with self._one_of_caller.setdefault(caller, asyncio.Lock()), self._one_answer:
            return await self._writer.run(binary_to_json, data, *_place(kind))

    async def close(self) -> None:
        """Ends the processes."""
        await self._readers.close()
        await self._writer.close()


def check_marks(data: bytes, limits: RequestLimits) -> None:
    """Refuses JSON with more values than the call may have, without reading it.

    Commas and brackets are counted wherever they stand, also within texts. A text that has more of them fits
    into a binary message.

    Args:
        data: The JSON.
        limits: Bounds of the call.

    Raises:
        InvalidArgumentError: It has more.
    """
    most = min(MAX_MARKS, _MARKS_OF_FIELDS + _MARKS_PER_ELEMENT * limits.elements)
    marks = 0
    for start in range(0, len(data), _COUNTED_AT_ONCE):
        marks += sum(data.count(mark, start, start + _COUNTED_AT_ONCE) for mark in (b",", b"{", b"["))
        if marks > most:
            raise InvalidArgumentError(
                f"the body has over {most} commas and brackets; this call takes at most that many in JSON: "
                "send less in one call, or send the message in binary (application/proto)"
            )


def _place(kind: Descriptor) -> tuple[str, str]:
    """The module of a message, and its name."""
    module = kind.file.name.removesuffix(".proto").replace("/", ".")
    return f"{module}_pb2", kind.full_name
