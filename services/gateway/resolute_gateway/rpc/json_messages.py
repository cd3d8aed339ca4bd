"""Converts one message to or from JSON. It imports only that message, so that its process starts fast."""

from __future__ import annotations

import importlib

from google.protobuf import descriptor_pool, json_format
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from resolute.errors import InvalidArgumentError


def json_to_binary(data: bytes, module: str, name: str) -> bytes:
    """Reads a message from JSON.

    Args:
        data: The JSON; empty for an empty message.
        module: Module of the message.
        name: Its full name.

    Raises:
        InvalidArgumentError: It is not JSON, or not of this kind of message.
    """
    message = _new(module, name)
    try:
        json_format.Parse(data or b"{}", message)
    except (json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
        kind = name.rpartition(".")[2]
        raise InvalidArgumentError(f"the body is not a {kind} in JSON: {str(error)[:500]}") from error
    return bytes(message.SerializeToString())


def binary_to_json(data: bytes, module: str, name: str) -> bytes:
    """Writes a message as JSON.

    Args:
        data: The message.
        module: Module of the message.
        name: Its full name.

    Raises:
        InvalidArgumentError: It is not of this kind of message.
    """
    message = _new(module, name)
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise InvalidArgumentError(f"the message is not a {name}: {error}") from error
    return json_format.MessageToJson(message, indent=None, ensure_ascii=False).encode()


def _new(module: str, name: str) -> Message:
    importlib.import_module(module)
    return GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(name))()
