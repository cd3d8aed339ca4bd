"""Converts values to and from messages of the contract, by the names of their fields.

A field that has the same name in both is copied; a caller passes only the other fields and computed values.
So a new field of the same name in both is converted without new code.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from enum import Enum
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from resolute.api.common.v1 import value_pb2
from resolute.contracts.times import to_timestamp
from resolute.contracts.values import from_value, to_mapping, to_value

ValueT = TypeVar("ValueT")
MessageT = TypeVar("MessageT", bound=Message)
EnumT = TypeVar("EnumT", bound=Enum)
_Convert = Callable[[Any], Any]
_TIMESTAMP = Timestamp.DESCRIPTOR.full_name
_VALUE = value_pb2.Value.DESCRIPTOR.full_name


def from_message(kind: type[ValueT], message: Message, /, **given: Any) -> ValueT:
    """Reads a message into a dataclass.

    The annotation of a field says what it becomes: a member of an enumeration or its name as text, a
    ``datetime``, plain data for a ``Value``, another dataclass for a message, a tuple for a list. A field
    that may be None is None when it is absent.

    Args:
        kind: The dataclass.
        message: What is read.
        given: Fields that are not read from the field of the same name.

    Raises:
        TypeError: A field of the dataclass is neither given nor in the message.
    """
    readers = _readers(kind, message.DESCRIPTOR)  # type: ignore[arg-type]  # a class is hashable
    values = {name: read(message) for name, read in readers.items() if name not in given}
    return kind(**values, **given)


def to_message(kind: type[MessageT], source: object, /, **given: Any) -> MessageT:
    """Writes a message from the attributes of a value.

    Unix seconds become a ``Timestamp``, a member of an enumeration or its name becomes the number, plain
    data a ``Value``. None leaves a field out.

    Args:
        kind: The message.
        source: Has an attribute for every field that is not given.
        given: Fields that are not written from the attribute of the same name.

    Raises:
        AttributeError: A field of the message is neither given nor an attribute.
    """
    for name, write in _writers(kind.DESCRIPTOR, tuple(given)):
        value = getattr(source, name)
        given[name] = value if write is None or value is None else write(value)
    return kind(**given)


def enum_member(kind: type[EnumT], descriptor: EnumDescriptor, number: int) -> EnumT:
    """Finds the member for a number of the contract; UNSPECIFIED for one that this version does not know."""
    return _members(kind, descriptor).get(number) or kind["UNSPECIFIED"]


def enum_number(descriptor: EnumDescriptor, name: str) -> int:
    """Finds the number of a name that lacks the prefix of the contract; an empty one is UNSPECIFIED.

    Raises:
        KeyError: The contract has no such name.
    """
    return _numbers(descriptor)[name or "UNSPECIFIED"]


def datetime_field(message: Message, field: str) -> datetime | None:
    """Reads a timestamp field, in UTC; None when it is absent."""
    return _to_datetime(getattr(message, field)) if message.HasField(field) else None


def _to_datetime(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(tzinfo=timezone.utc)


@functools.cache
def _readers(kind: type, descriptor: Descriptor) -> Mapping[str, Callable[[Message], Any]]:
    hints = typing.get_type_hints(kind)
    return {
        field.name: _reader(kind, field.name, hint=hints[field.name], descriptor=descriptor)
        for field in dataclasses.fields(kind)
        if field.init
    }


def _reader(kind: type, name: str, *, hint: Any, descriptor: Descriptor) -> Callable[[Message], Any]:
    if name not in descriptor.fields_by_name:

        def refuse(_: Message) -> Any:
            raise TypeError(f"{kind.__name__}.{name} is not given, and {descriptor.name} has no such field")

        return refuse
    field = descriptor.fields_by_name[name]
    read = operator.attrgetter(name)
    optional, inner = _without_none(hint)
    if typing.get_origin(inner) is tuple:
        convert = _converter(field, typing.get_args(inner)[0])
        return lambda message: tuple(map(convert, read(message)) if convert else read(message))
    convert = _converter(field, inner)
    if optional and field.has_presence:
        return lambda message: (
            None if not message.HasField(name) else convert(read(message)) if convert else read(message)
        )
    return (lambda message: convert(read(message))) if convert else read


def _without_none(hint: Any) -> tuple[bool, Any]:
    if typing.get_origin(hint) not in {typing.Union, types.UnionType}:
        return False, hint
    kinds = [kind for kind in typing.get_args(hint) if kind is not types.NoneType]
    return len(kinds) < len(typing.get_args(hint)), kinds[0]


def _converter(field: FieldDescriptor, hint: Any) -> _Convert | None:
    """Returns how a single value of a field is read; None where it stays as it is."""
    if field.enum_type is not None:
        if hint is str:
            names = {number: name for name, number in _numbers(field.enum_type).items() if number}
            return lambda number: names.get(number, "")
        members = _members(hint, field.enum_type)
        return lambda number: members.get(number) or hint["UNSPECIFIED"]
    if field.message_type is None:
        return None
    if field.message_type.full_name == _TIMESTAMP:
        return _to_datetime
    if field.message_type.full_name == _VALUE:
        return to_mapping if typing.get_origin(hint) is dict else from_value
    return lambda message: from_message(hint, message)


@functools.cache
def _writers(descriptor: Descriptor, given: tuple[str, ...]) -> Sequence[tuple[str, _Convert | None]]:
    """Returns how each field is written that a caller does not give."""
    return [(field.name, _writer(field)) for field in descriptor.fields if field.name not in given]


def _writer(field: FieldDescriptor) -> _Convert | None:
    """Returns how a value of a field is written; None where it stays as it is."""
    message = field.message_type
    if field.enum_type is not None:
        numbers = _numbers(field.enum_type)
        return lambda value: numbers[value.name if isinstance(value, Enum) else value or "UNSPECIFIED"]
    if message is None or not field.has_presence:
        return None  # a scalar, or a list of messages
    writers: dict[str, _Convert] = {_TIMESTAMP: to_timestamp, _VALUE: to_value}
    return writers.get(message.full_name)


@functools.cache
def _numbers(descriptor: EnumDescriptor) -> Mapping[str, int]:
    """Numbers by names without the prefix that the contract gives all names of an enumeration."""
    prefix = descriptor.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return {value.name.removeprefix(prefix): value.number for value in descriptor.values}


@functools.cache
def _members(kind: type[EnumT], descriptor: EnumDescriptor) -> Mapping[int, EnumT]:
    known = kind.__members__
    return {number: known[name] for name, number in _numbers(descriptor).items() if name in known}
