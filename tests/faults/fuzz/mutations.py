"""What is done to right requests: one odd value, a huge list, a corrupt byte."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field

_TEXTS = (
    "",
    "\0",
    "a\0b",
    "\x1b[2J\x1b]0;x\x07",
    "\u202eevil\u2066",
    "\ufffe\uffff",
    "\U0010ffff" * 40,
    "e\u0301" * 300,
    "../../../../etc/passwd",
    "'; DROP TABLE experiments; --",
    "%s%n%x{}",
    "x" * 70_000,
    "\n\r\t ",
    "00000000-0000-0000-0000-000000000000",
    "{" * 500,
    "[" * 20_000,
    "&a [*a, *a]",
    "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b]",
    "eyJhIjogMX0=",
    "W10=",
    "WyJhIiwgMV0=",
    "WyIiLCBbMWUzMDgsIG51bGxdXQ==",
    "é" * 50,
    "NaN",
    "-1",
    "9" * 400,
    "(a+)+$",
    "(?P<n>",
)
SURROGATE = "lone surrogate"
"""Replaced in the bytes by something of the same length that is not UTF-8."""
_SURROGATE_BYTES = b"\xed\xa0\x80" + b"." * (len(SURROGATE) - 3)
_WHOLE = (0, -1, 1, 2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**53 + 1, 2**62, 2**63 - 1, -(2**63))
_REAL = (0.0, -0.0, -1.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf"))
_RANGES = {
    Field.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    Field.CPPTYPE_UINT32: (0, 2**32 - 1),
    Field.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    Field.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_MOST_ELEMENTS = 3_000
_MOST_COPIED = 64 << 20
"""Bytes."""


def mutate(request: Any, rng: random.Random) -> str:
    """Changes one field somewhere in a request, and returns its path."""
    places = list(_places(request, ""))
    if not places:
        return ""
    message, field, path = rng.choice(places)
    if field.is_repeated:
        _mutate_repeated(message, field, rng)
    elif field.message_type is not None:
        _mutate_message(message, field, rng)
    else:
        setattr(message, field.name, _odd(field, rng))
    return path


def corrupt(data: bytes, rng: random.Random) -> bytes:
    """Changes, drops or adds some bytes of a serialized request."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(changed) + 1)
        match rng.randrange(3):
            case 0 if place < len(changed):
                changed[place] ^= 1 << rng.randrange(8)
            case 1:
                del changed[place : place + rng.randrange(1, 8)]
            case _:
                changed[place:place] = rng.randbytes(rng.randrange(1, 8))
    return bytes(changed)


def with_surrogates(data: bytes) -> bytes:
    """Puts lone surrogates, which no string of a message can hold, into the bytes."""
    return data.replace(SURROGATE.encode(), _SURROGATE_BYTES)


def _places(message: Any, path: str) -> Iterator[tuple[Any, Field, str]]:
    for field in message.DESCRIPTOR.fields:
        here = f"{path}.{field.name}" if path else field.name
        yield message, field, here
        if field.message_type is None or _is_map(field):
            continue
        if field.is_repeated:
            for index, child in enumerate(list(getattr(message, field.name))[:3]):
                yield from _places(child, f"{here}[{index}]")
        elif message.HasField(field.name):
            yield from _places(getattr(message, field.name), here)


def _is_map(field: Field) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _mutate_repeated(message: Any, field: Any, rng: random.Random) -> None:
    values = getattr(message, field.name)
    many = rng.choice((0, 1, 2, 2, 17, _MOST_ELEMENTS))
    if _is_map(field):
        if not field.message_type.fields_by_name["value"].message_type:
            key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            values.update({_odd(key, rng): _odd(value, rng)})
        else:
            for _ in range(many):
                values[_odd(field.message_type.fields_by_name["key"], rng)].SetInParent()
    elif not many:
        del values[:]
    elif field.message_type is not None:
        first = values[0] if len(values) else None
        # Copies of what has thousands of elements itself would be gigabytes.
        for _ in range(min(many, 2 + _MOST_COPIED // (first.ByteSize() + 1)) if first is not None else many):
            added = values.add()
            if first is not None:
                added.CopyFrom(first)
    else:
        one = values[0] if len(values) and rng.random() < 0.3 else _odd(field, rng)
        values.extend([one] * (many if not isinstance(one, str) or len(one) < 1_000 else 1))


def _mutate_message(message: Any, field: Any, rng: random.Random) -> None:
    kind = field.message_type.full_name
    child = getattr(message, field.name)
    if kind in {"google.protobuf.Timestamp", "google.protobuf.Duration"}:
        child.seconds = rng.choice((*_WHOLE, -62135596801, 253402300800, 315576000001))
        child.nanos = rng.choice((0, -1, 10**9, 2**31 - 1, -(2**31)))
    elif kind == "resolute.api.common.v1.Value":
        _odd_value(child, rng)
    elif rng.random() < 0.3:
        message.ClearField(field.name)
    else:
        child.SetInParent()


def _odd_value(value: Any, rng: random.Random) -> None:
    match rng.randrange(6):
        case 0:
            for _ in range(rng.choice((5, 30, 40))):
                value = value.list_value.values.add()
        case 1:
            for _ in range(_MOST_ELEMENTS):
                value.list_value.values.add(int_value=1)
        case 2:
            value.map_value.fields[_text(rng)].string_value = _text(rng)
        case 3:
            value.double_value = rng.choice(_REAL)
        case 4:
            value.int_value = rng.choice(_WHOLE)
        case _:
            value.Clear()


def _odd(field: Any, rng: random.Random) -> Any:
    kind = field.cpp_type
    if kind == Field.CPPTYPE_STRING:
        return rng.randbytes(rng.choice((0, 1, 100))) if field.type == Field.TYPE_BYTES else _text(rng)
    if kind in {Field.CPPTYPE_DOUBLE, Field.CPPTYPE_FLOAT}:
        return rng.choice(_REAL)
    if kind == Field.CPPTYPE_BOOL:
        return rng.random() < 0.5
    if kind == Field.CPPTYPE_ENUM:
        return rng.choice((-1, 0, 99, 2**31 - 1, *(value.number for value in field.enum_type.values)))
    low, high = _RANGES[kind]
    return rng.choice([number for number in _WHOLE if low <= number <= high])


def _text(rng: random.Random) -> str:
    return rng.choice((*_TEXTS, SURROGATE))
