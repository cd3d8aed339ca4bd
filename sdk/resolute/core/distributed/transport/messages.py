"""The messages between the ranks, their format, and their authentication.

A message is a multipart: a header of fixed size, then the frames of its payload. With a key, the header
carries a digest of the payload and an HMAC over itself. So a message can be forwarded unchanged without
reading its payload, and its origin is verified before it is unpickled.
"""

import enum
import hashlib
import hmac
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolute.core.distributed.errors import CollectiveAuthError, MalformedFrameError
from resolute.core.distributed.transport.payload import Encoding, Frame, view

SESSION_BYTES = 8
NO_SESSION = bytes(SESSION_BYTES)

_MAGIC = b"RSC1"
# magic, kind, operation, encoding, signed, session, rank, serial
_HEADER = struct.Struct(f">4sBBBB{SESSION_BYTES}sIQ")
_DIGEST_BYTES = hashlib.sha256().digest_size
_SIGNED_BYTES = _HEADER.size + 2 * _DIGEST_BYTES


class Kind(enum.IntEnum):
    """The kind of a message."""

    HELLO = 1  # member: here I am
    WAIT = 2  # hub: known, others are missing
    READY = 3  # hub: all are here
    REFUSE = 4  # hub: not in this job
    CONTRIBUTE = 5  # member: my part of a collective
    RESULT = 6  # hub: a collective's result
    ABORT = 7  # hub: no collective will work any more
    BYE = 8  # member: I leave


class Op(enum.IntEnum):
    """The collectives."""

    NONE = 0
    GATHER = 1
    ALLGATHER = 2
    BROADCAST = 3

    @property
    def call(self) -> str:
        """As people write it."""
        return f"{self.name.lower()}()"


@dataclass(frozen=True)
class Message:
    """One message.

    Attributes:
        kind: Kind of the message.
        rank: Index of the sender within the group.
        session: Identifier of its group; zeros before that is known.
        serial: Number of the collective, from 1.
        op: Kind of the collective.
        encoding: Encoding of the value in `frames`.
        frames: The payload.
    """

    kind: Kind
    rank: int
    session: bytes = NO_SESSION
    serial: int = 0
    op: Op = Op.NONE
    encoding: Encoding = Encoding.NOTHING
    frames: tuple[Frame, ...] = ()


class Codec:
    """Converts messages to frames and back.

    Args:
        key: Secret that signs and verifies every message; None for no signatures.
    """

    def __init__(self, key: bytes | None) -> None:
        self._key = key

    @property
    def signs(self) -> bool:
        """Whether there is a key."""
        return self._key is not None

    def encode(self, message: Message) -> list[Frame]:
        """The frames to send, header first."""
        header = _HEADER.pack(
            _MAGIC,
            message.kind,
            message.op,
            message.encoding,
            self._key is not None,
            message.session,
            message.rank,
            message.serial,
        )
        if self._key is not None:
            header += _digest(message)
            header += hmac.digest(self._key, header, "sha256")
        return [header, *message.frames]

    def decode(self, frames: Sequence[Frame], *, with_payload: bool = True) -> Message:
        """The message in these frames.

        Args:
            frames: As received, header first.
            with_payload: Check that the payload is the signed one. Who only passes it on need not.

        Raises:
            MalformedFrameError: It is none.
            CollectiveAuthError: It is not signed with our key, or signed while we have none.
        """
        if not frames:
            raise MalformedFrameError("an empty message arrived")
        header = bytes(view(frames[0]))
        try:
            magic, kind, op, encoding, signed, session, rank, serial = _HEADER.unpack_from(header)
            if magic != _MAGIC or len(header) != (_SIGNED_BYTES if signed else _HEADER.size):
                raise MalformedFrameError("a message of another protocol or version arrived")
            message = Message(
                Kind(kind), rank, session, serial, Op(op), Encoding(encoding), tuple(frames[1:])
            )
        except (struct.error, ValueError) as error:
            raise MalformedFrameError(f"a message cannot be read: {error}") from None
        if encoding and not message.frames:
            raise MalformedFrameError("a message lost its payload")
        self._authenticate(header, message, signed=bool(signed), with_payload=with_payload)
        return message

    def _authenticate(self, header: bytes, message: Message, *, signed: bool, with_payload: bool) -> None:
        if self._key is None:
            if signed:
                raise CollectiveAuthError(
                    "a signed message arrived, but RESOLUTE_COLLECTIVE_KEY is not set here: "
                    "set the same key for every rank"
                )
            return
        if not signed:
            raise CollectiveAuthError(
                "an unsigned message arrived: set RESOLUTE_COLLECTIVE_KEY for every rank"
            )
        body, mac = header[:-_DIGEST_BYTES], header[-_DIGEST_BYTES:]
        if not hmac.compare_digest(mac, hmac.digest(self._key, body, "sha256")):
            raise CollectiveAuthError("a message signed with another RESOLUTE_COLLECTIVE_KEY arrived")
        if with_payload and not hmac.compare_digest(body[_HEADER.size :], _digest(message)):
            raise CollectiveAuthError(f"the payload of rank {message.rank} is not the one that it signed")


def pack_fields(fields: Mapping[str, Any]) -> tuple[bytes]:
    """Plain fields as the only frame of a message that must be read before its sender is trusted."""
    return (json.dumps(fields, separators=(",", ":")).encode(),)


def unpack_fields(message: Message) -> dict[str, Any]:
    """The fields of such a message.

    Raises:
        MalformedFrameError: There are none.
    """
    try:
        fields = json.loads(bytes(view(message.frames[0])))
    except (IndexError, ValueError):
        fields = None
    if not isinstance(fields, dict):
        raise MalformedFrameError(f"a {message.kind.name} message without its fields arrived")
    return fields


def _digest(message: Message) -> bytes:
    digest = hashlib.sha256()
    # A result is made of messages that prove themselves, each to its reader; no need to do it twice.
    for frame in () if message.kind is Kind.RESULT else message.frames:
        content = view(frame)
        # With the length, frames cannot be cut differently and keep their digest.
        digest.update(content.nbytes.to_bytes(8, "big"))
        digest.update(content)
    return digest.digest()
