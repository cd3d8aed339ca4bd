"""Encodes Python values as frames, without copies of large buffers.

Large contiguous buffers, such as arrays, are taken out of the pickle and become frames of their own. A large
`bytes` value is sent unpickled.
"""

import enum
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import zmq

Frame = bytes | memoryview | zmq.Frame

# Below this the transport copies anyway, and a frame of its own costs more than it saves.
LARGE = 64 * 1024


class Encoding(enum.IntEnum):
    """The encoding of the value in a payload's frames."""

    NOTHING = 0
    PICKLE = 1
    BYTES = 2


@dataclass(frozen=True)
class Payload:
    """An encoded value."""

    encoding: Encoding = Encoding.NOTHING
    frames: tuple[Frame, ...] = ()


NO_PAYLOAD = Payload()


def view(frame: Frame) -> memoryview:
    """The bytes of a frame, not copied."""
    return frame.buffer if isinstance(frame, zmq.Frame) else memoryview(frame)


def dump(value: Any) -> Payload:
    """Encodes a value. Its large buffers are shared with it, not copied, until they are sent."""
    if type(value) is bytes and len(value) >= LARGE:
        return Payload(Encoding.BYTES, (value,))
    large: list[memoryview] = []

    def keep_in_band(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < LARGE:
            return True
        large.append(raw)
        return False

    stream = pickle.dumps(value, protocol=5, buffer_callback=keep_in_band)
    return Payload(Encoding.PICKLE, (stream, *large))


def load(encoding: Encoding, frames: Sequence[Frame], *, private: bool) -> Any:
    """Decodes a value.

    Args:
        encoding: How it was encoded.
        frames: Its frames. They must come from an authenticated peer: a pickle runs code.
        private: No other code reads the memory of these frames, so the value may live in it.
    """
    if encoding is Encoding.NOTHING:
        return None
    if encoding is Encoding.BYTES:
        return bytes(view(frames[0]))
    buffers = (view(frame) if private else bytearray(view(frame)) for frame in frames[1:])
    return pickle.loads(view(frames[0]), buffers=buffers)  # noqa: S301 - ranks of one job trust each other
