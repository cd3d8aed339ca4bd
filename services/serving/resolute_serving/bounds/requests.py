"""Reads the bytes of a request within its bounds, and refuses values that no service can use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from resolute.errors import InvalidArgumentError, UnavailableError
from resolute_serving.bounds.limits import (
    MAX_BYTES_IN_PROGRESS,
    MIB,
    THREAD_BYTES,
    RequestLimits,
)
from resolute_serving.validation import invalid

Deserialize = Callable[[bytes], Any]
_CHECKED_BY_SERVICE = frozenset({"resolute.api.logs.v1.LineColumns", "resolute.api.metrics.v1.ReportBlock"})
"""Batches whose items are refused or mended one by one: a batch must not be stuck because of one of them."""
_USER_DATA = frozenset({"resolute.api.common.v1.Value", "resolute.api.common.v1.MapValue"})
"""Metadata, hyperparameters and metrics of users: they come back as they were, and JSON can hold a NUL."""
_MENDED = frozenset(
    {
        "resolute.api.experiments.v1.ReportExitRequest.failure",
        "resolute.api.experiments.v1.EndRunRequest.failure",
    }
)
"""Texts that failing programs wrote. The end of a run must be taken whatever its output is."""
_TIMES = {
    "google.protobuf.Timestamp": (-62_135_596_800, 253_402_300_799),
    "google.protobuf.Duration": (-315_576_000_000, 315_576_000_000),
}
"""Seconds that each may have: years 1 to 9999, and 10 000 years."""
_SHOWN_PATH = 200


class RequestReader:
    """Reads the requests of a server, and counts their bytes.

    Args:
        max_bytes: Most bytes of requests in progress.
    """

    def __init__(self, *, max_bytes: int = MAX_BYTES_IN_PROGRESS) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0

    @contextmanager
    def admit(self, size: int) -> Iterator[None]:
        """Counts bytes of a request until the block ends.

        Raises:
            UnavailableError: The server works on as much as it may hold.
        """
        self._require_room(size)
        self._bytes += size
        try:
            yield
        finally:
            self._bytes -= size

    async def read(self, data: bytes, deserialize: Deserialize, limits: RequestLimits) -> Any:
        """Reads one message.

        Raises:
            InvalidArgumentError: It is too large or cannot be read; ``violations`` names the field.
        """
        if len(data) > THREAD_BYTES:
            return await asyncio.to_thread(read_message, data, deserialize, limits)
        return read_message(data, deserialize, limits)

    async def stream(
        self, messages: AsyncIterator[bytes], deserialize: Deserialize, limits: RequestLimits
    ) -> AsyncGenerator[Any, None]:
        """Reads the messages of a client stream; its bytes count until the stream ends.

        Raises:
            InvalidArgumentError: A message, or all together, are too large, or one cannot be read.
            UnavailableError: The server works on as much as it may hold.
        """
        total = 0
        try:
            async for data in messages:
                if total + len(data) > limits.stream_bytes:
                    raise InvalidArgumentError(
                        f"the stream has more than {limits.stream_bytes} bytes; send less in one call"
                    )
                self._require_room(len(data), held=total)
                self._bytes += len(data)
                total += len(data)
                yield await self.read(data, deserialize, limits)
        finally:
            self._bytes -= total

    def _require_room(self, size: int, *, held: int = 0) -> None:
        # One call alone always fits: otherwise it would be refused for ever.
        if self._bytes > held and self._bytes + size > self._max_bytes:
            raise UnavailableError(
                f"the server works on {self._bytes // MIB} MiB of requests, as much as it may hold; try again"
            )


def read_message(data: bytes, deserialize: Deserialize, limits: RequestLimits) -> Any:
    """Reads and checks one message.

    Raises:
        InvalidArgumentError: It is too large or cannot be read; ``violations`` names the field.
    """
    _require_size(len(data), limits)
    try:
        message = deserialize(data)
    except DecodeError as error:
        raise InvalidArgumentError(
            f"the request cannot be read ({error}); send a message of the contract, with text in UTF-8"
        ) from error
    _Check(limits.elements).message(message, "")
    return message


def own_message(message: Message, limits: RequestLimits) -> Message:
    """Copies and checks a message of this process, which its sender may change after the call.

    Raises:
        InvalidArgumentError: It is too large; ``violations`` names the field.
    """
    _require_size(message.ByteSize(), limits)
    own = type(message)()
    own.CopyFrom(message)
    _Check(limits.elements).message(own, "")
    return own


def _require_size(size: int, limits: RequestLimits) -> None:
    if size > limits.message_bytes:
        raise InvalidArgumentError(
            f"the request has {size} bytes; this call takes at most {limits.message_bytes}"
        )


class _Check:
    def __init__(self, elements: int) -> None:
        self._most = elements
        self._left = elements

    def message(self, message: Message, path: str) -> None:
        kind = message.DESCRIPTOR.full_name
        if kind in _TIMES:
            _check_time(message, kind, path)
            return
        user_data = kind in _USER_DATA
        mended = user_data or kind in _CHECKED_BY_SERVICE
        for field, value in message.ListFields():
            here = f"{path}.{field.name}" if path else field.name
            if isinstance(value, Message):
                self._count(1, here)
                self.message(value, here)
            elif isinstance(value, str):
                if "\0" in value and not user_data:
                    _mend(message, field, value, here)
            elif isinstance(value, int | float | bytes):
                if field.enum_type is not None:
                    _check_enum(field.enum_type, int(value), here)
            elif not mended or field.message_type is not None:
                self._repeated(field, value, here, checked=not mended)
            else:
                self._count(len(value), here)

    def _repeated(self, field: FieldDescriptor, values: Any, path: str, *, checked: bool) -> None:
        self._count(len(values), path)
        kind = field.message_type
        if kind is None:
            self._scalars(field, values, path)
        elif kind.GetOptions().map_entry:
            self._map(kind.fields_by_name["value"], values, path, checked=checked)
        else:
            for index, value in enumerate(values):
                self.message(value, f"{path}[{index}]")

    def _scalars(self, field: FieldDescriptor, values: Any, path: str) -> None:
        if field.type == FieldDescriptor.TYPE_STRING:
            for index, value in enumerate(values):
                _check_text(value, f"{path}[{index}]")
        elif field.enum_type is not None:
            for number in set(values):
                _check_enum(field.enum_type, number, path)

    def _map(self, field: FieldDescriptor, values: Any, path: str, *, checked: bool) -> None:
        for key, value in values.items():
            if isinstance(key, str) and checked:
                _check_text(key, f"{path} (a key)")
            if isinstance(value, Message):
                self.message(value, f"{path}[{str(key)[:40]!r}]")
            elif isinstance(value, str):
                _check_text(value, f"{path}[{str(key)[:40]!r}]")

    def _count(self, elements: int, path: str) -> None:
        self._left -= elements
        if self._left < 0:
            here = path[:_SHOWN_PATH]
            raise invalid(
                here, f"the request has more than {self._most} elements at {here}; send less in one call"
            )


def _check_time(message: Any, kind: str, path: str) -> None:
    low, high = _TIMES[kind]
    seconds, nanos = message.seconds, message.nanos
    duration = kind == "google.protobuf.Duration"
    fine = low <= seconds <= high and (-(10**9) if duration else -1) < nanos < 10**9
    if not fine or (duration and seconds * nanos < 0):
        what = "duration of up to 10000 years" if duration else "time in the years 1 to 9999"
        raise invalid(
            path[:_SHOWN_PATH], f"{path[:_SHOWN_PATH]} is {seconds} s and {nanos} ns; it must be a {what}"
        )


def _check_enum(kind: EnumDescriptor, number: int, path: str) -> None:
    if number not in kind.values_by_number:
        raise invalid(
            path[:_SHOWN_PATH],
            f"{path[:_SHOWN_PATH]} is {number}, which is no {kind.name}; use one of its values",
        )


def _check_text(value: str, path: str) -> None:
    if "\0" in value:
        raise invalid(path[:_SHOWN_PATH], f"{path[:_SHOWN_PATH]} holds a NUL character; leave it out")


def _mend(message: Message, field: FieldDescriptor, value: str, path: str) -> None:
    if field.full_name in _MENDED:
        setattr(message, field.name, value.replace("\0", "\ufffd"))
    else:
        _check_text(value, path)
