"""The random stream is numpy's legacy generator, and its position is its whole state."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute_searcher.rng import RandomStream, StreamPosition

SEEDS = st.integers(0, 2**32 - 1)


def test_bounded_numbers_equal_the_documented_ones() -> None:  # as release 0.30 does
    stream = RandomStream(42)
    assert [stream.bounded(10) for _ in range(10)] == [6, 3, 7, 4, 6, 9, 2, 6, 7, 4]


@given(SEEDS, st.lists(st.integers(1, 2**63 - 1) | st.integers(1, 300), max_size=40))
def test_bounded_numbers_equal_numpys(seed: int, bounds: list[int]) -> None:  # as release 0.30 does
    stream, reference = RandomStream(seed), np.random.RandomState(seed)
    expected = [int(reference.randint(0, bound, dtype=np.int64)) for bound in bounds]
    assert [stream.bounded(bound) for bound in bounds] == expected


@given(SEEDS, st.integers(1, 400))
def test_unit_numbers_and_bytes_equal_numpys(seed: int, count: int) -> None:  # as release 0.30 does
    stream, reference = RandomStream(seed), np.random.RandomState(seed)
    assert [stream.unit() for _ in range(count)] == reference.random_sample(count).tolist()
    assert stream.octets(4) == reference.bytes(16)


@given(SEEDS, st.integers(0, 2000), st.integers(0, 2000))
def test_a_stream_continues_from_its_position(
    seed: int, before: int, after: int
) -> None:  # as release 0.30 does
    stream = RandomStream(seed)
    for _ in range(before):
        stream.word()
    saved = json.loads(json.dumps(stream.position.to_json()))
    position = StreamPosition.from_json(saved)
    rebuilt, advanced = RandomStream(position.seed, position.draws), RandomStream(seed)
    advanced.advance_to(before)
    assert position == StreamPosition(seed, before) == rebuilt.position == advanced.position
    following = [stream.word() for _ in range(after)]
    assert [rebuilt.word() for _ in range(after)] == following
    assert [advanced.word() for _ in range(after)] == following
    advanced.advance_to(before + after + 10)
    rebuilt.advance_to(before + after + 10)
    assert advanced.word() == rebuilt.word()


def test_a_bound_of_one_takes_nothing() -> None:  # as release 0.30 does
    stream = RandomStream(3)
    assert stream.bounded(1) == 0
    assert stream.position.draws == 0


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(ValueError, match="random seed 4294967296 is outside"):
        RandomStream(2**32)
    with pytest.raises(ValueError, match="random seed -1"):
        RandomStream(-1)
    with pytest.raises(ValueError, match="cannot skip -1"):
        RandomStream(0, -1)
    with pytest.raises(ValueError, match="below 0"):
        RandomStream(0).bounded(0)
    stream = RandomStream(0, 5)
    with pytest.raises(ValueError, match="cannot go back by 2 words"):
        stream.advance_to(3)
