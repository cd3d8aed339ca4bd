"""Bundles the parts of many ranks into one message.

Small frames share one blob, so a result has only a few frames for any number of ranks. Large frames stay
separate; all receivers share them without copies.
"""

import struct
from collections.abc import Mapping, Sequence

from resolute.core.distributed.errors import MalformedFrameError
from resolute.core.distributed.transport.payload import LARGE, Frame, view

# What one rank sent: the frames of its message, header first, as they came.
Part = Sequence[Frame]


class Bundle:
    """Parts by rank, ready to be sent to any of the ranks."""

    def __init__(self, parts: Mapping[int, Part]) -> None:
        numbers: list[int] = []
        small: list[memoryview] = []
        self._large: list[tuple[int, Frame]] = []
        for rank, frames in sorted(parts.items()):
            sizes = [len(frame) for frame in frames]
            numbers += [rank, len(frames), *sizes]
            for frame, size in zip(frames, sizes, strict=True):
                if size < LARGE:
                    small.append(view(frame))
                else:
                    self._large.append((rank, frame))
        self._table = struct.pack(f">{len(numbers)}Q", *numbers)
        self._blob = b"".join(small)

    def frames_for(self, receiver: int) -> tuple[Frame, ...]:
        """What to send to one rank: everything but its own large frames, which it has."""
        return (self._table, self._blob, *(frame for rank, frame in self._large if rank != receiver))


def unbundle(frames: Sequence[Frame], receiver: int) -> dict[int, list[Frame]]:
    """The parts of all ranks but the receiver.

    Raises:
        MalformedFrameError: The frames are no bundle for this receiver.
    """
    try:
        table, blob, *rest = frames
        numbers = list(struct.unpack(f">{len(table) // 8}Q", view(table)))
        return _cut(numbers, view(blob), rest, receiver)
    except (struct.error, ValueError, IndexError) as error:
        raise MalformedFrameError(f"a result cannot be read: {error}") from None


def _cut(numbers: list[int], blob: memoryview, large: list[Frame], receiver: int) -> dict[int, list[Frame]]:
    parts: dict[int, list[Frame]] = {}
    at = offset = taken = 0
    while at < len(numbers):
        rank, count = numbers[at], numbers[at + 1]
        sizes = numbers[at + 2 : at + 2 + count]
        at += 2 + count
        part: list[Frame] = []
        for size in sizes:
            if size < LARGE:
                part.append(blob[offset : offset + size])
                offset += size
            elif rank != receiver:
                part.append(large[taken])
                taken += 1
        if rank != receiver:
            parts[rank] = part
    if offset != len(blob) or taken != len(large):
        raise ValueError("its table and its frames differ")
    return parts
