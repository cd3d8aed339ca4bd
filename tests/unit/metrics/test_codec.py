"""What is stored comes back bit by bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute_metrics.store import codec
from resolute_metrics.store.rows import Rows

INT64 = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(INT64, min_size=1, max_size=50))
def test_integers_come_back(integers: list[int]) -> None:
    array = np.array(integers, dtype=np.int64)
    assert codec.decode_integers(codec.encode_integers(array), len(array)).tolist() == integers


@given(INT64, st.integers(-5, 5), st.integers(1, 1000))
def test_a_progression_takes_a_few_bytes(first: int, stride: int, count: int) -> None:
    if not -(2**63) <= first + stride * count < 2**63:
        return
    array = np.array([first + stride * number for number in range(count)], dtype=np.int64)
    data = codec.encode_integers(array)
    assert len(data) == 17
    assert codec.decode_integers(data, count).tolist() == array.tolist()


@pytest.mark.parametrize("count", [1, 5, codec.TALL - 1, codec.TALL, 1000])
@pytest.mark.parametrize("names", [0, 1, 7])
def test_rows_come_back(count: int, names: int) -> None:
    generator = np.random.default_rng(count)
    values = generator.normal(size=(count, names))
    values[:, :1] = np.nan
    rows = Rows(
        sequences=np.arange(7, 7 + count, dtype=np.int64),
        steps=generator.integers(0, 100, count),
        times=generator.normal(size=count),
        values=values,
        extras={0: {"note": "text", "big": 2**60 + 1, "list": [None, True, 1.5, math.inf]}},
    )
    block = codec.encode(rows)
    assert (block.matrix is None) == (count >= codec.TALL)
    assert (block.first_step, block.last_step) == (rows.steps.min(), rows.steps.max())
    found = codec.decode(block)
    assert found.sequences.tolist() == rows.sequences.tolist()
    assert found.steps.tolist() == rows.steps.tolist()
    assert found.times.tobytes() == rows.times.tobytes()
    assert np.array_equal(found.values, values, equal_nan=True)
    assert found.values.shape == values.shape
    assert found.extras == rows.extras


def test_one_column_can_be_read_alone() -> None:
    rows = Rows(*(np.arange(3, dtype=np.int64),) * 2, np.zeros(3), np.array([[1.0, 2], [3, 4], [5, 6]]))
    block = codec.encode(rows)
    assert block.matrix is not None
    assert codec.decode_column(block.matrix, 1, 3).tolist() == [2, 4, 6]
