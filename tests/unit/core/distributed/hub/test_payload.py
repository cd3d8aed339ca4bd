"""Values as frames and back."""

from typing import Any

import numpy as np
import pytest

from resolute.core.distributed.transport.payload import LARGE, Encoding, dump, load, view


def test_small_values_are_one_frame() -> None:
    payload = dump({"loss": 0.5, "weights": np.zeros(4)})

    assert len(payload.frames) == 1


@pytest.mark.parametrize("value", [None, 3, "text", b"bytes", {"a": [1, (2, 3)]}, b"x" * (2 * LARGE)])
def test_values_come_back_equal(value: Any) -> None:
    payload = dump(value)

    assert load(payload.encoding, payload.frames, private=True) == value


def test_large_arrays_are_not_copied_on_the_way_out() -> None:
    array = np.zeros(LARGE, dtype=np.uint8)

    _, frame = dump({"array": array}).frames

    array[0] = 7
    assert view(frame)[0] == 7


def test_large_bytes_are_not_pickled() -> None:
    value = b"x" * LARGE

    payload = dump(value)

    assert payload.encoding is Encoding.BYTES
    assert payload.frames[0] is value


def test_arrays_live_in_memory_that_is_nobody_elses() -> None:
    stream, _ = dump(np.zeros(LARGE, dtype=np.uint8)).frames
    memory = bytearray(LARGE)

    array = load(Encoding.PICKLE, [stream, memoryview(memory)], private=True)

    array[0] = 7
    assert memory[0] == 7


def test_arrays_from_memory_that_others_read_are_copies_and_can_be_written() -> None:
    stream, _ = dump(np.zeros(LARGE, dtype=np.uint8)).frames
    memory = bytearray(LARGE)

    array = load(Encoding.PICKLE, [stream, memoryview(memory)], private=False)

    array[0] = 7
    assert memory[0] == 0


def test_read_only_arrays_stay_read_only() -> None:
    array = np.zeros(LARGE, dtype=np.uint8)
    array.flags.writeable = False
    stream, frame = dump(array).frames

    again = load(Encoding.PICKLE, [stream, memoryview(bytearray(view(frame)))], private=True)

    assert not again.flags.writeable


def test_nothing_is_none() -> None:
    assert load(Encoding.NOTHING, (), private=True) is None
