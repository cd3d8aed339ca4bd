"""Request messages for tests of the server kit, which knows no service's own."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_TYPES = {str: 9, int: 5}
_pool = descriptor_pool.DescriptorPool()


def message_type(name: str, /, **fields: type) -> Any:
    """Makes a message type.

    Args:
        name: Its name; each needs one of its own.
        fields: Its fields, each ``str`` or ``int``.
    """
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package="test", syntax="proto3")
    message = file.message_type.add(name=name)
    for number, (field, kind) in enumerate(fields.items(), start=1):
        message.field.add(name=field, number=number, label=1, type=_TYPES[kind])
    _pool.Add(file)
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"test.{name}"))
