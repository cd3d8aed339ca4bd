"""Encoded messages: codecs for the protocol library that forward binary messages without decoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from connectrpc.codec import Codec


@dataclass(slots=True)
class Encoded:
    """A message in its encoded form."""

    data: bytes
    json: bool
    """Whether it is JSON; else it is Protobuf's binary format."""

    def taken(self) -> Encoded:
        """The message, of which this object keeps nothing: the protocol library names it for long."""
        taken = Encoded(self.data, json=self.json)
        self.data = b""
        return taken


class PassingCodec(Codec[Encoded, Any]):
    """A codec that does not decode messages.

    Args:
        name: ``json`` or ``proto``, as in content types.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        """The name of the encoding in content types."""
        return self._name

    def encode(self, message: Encoded) -> bytes:
        """Returns the bytes of a response."""
        return message.data

    def decode(self, data: bytes | bytearray, message_class: type[Any]) -> Encoded:
        """Marks the bytes of a request with their encoding."""
        return Encoded(bytes(data), json=self._name == "json")
