"""Packed states come back as they were, or not at all."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute_searcher.store.packing import CorruptStateError, pack, unpack

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(st.dictionaries(st.text(), values))
def test_a_state_comes_back_as_it_was(state: dict[str, object]) -> None:
    assert json.dumps(unpack(pack(state))) == json.dumps(state)


@pytest.mark.parametrize("size", [0, 999, 1000, 1001, 2000, 4321])
def test_large_lists_and_objects_come_back_in_order(size: int) -> None:
    state = {
        "trials": {str(number): [number, {"": [number]}] for number in reversed(range(size))},
        "nested": [{"entries": list(range(size))}, {"": {"": "a name that looks like a mark"}}],
    }
    assert json.dumps(unpack(pack(state))) == json.dumps(state)


def test_numbers_that_json_lacks_come_back() -> None:
    found = unpack(pack({"all": [math.nan, math.inf, -math.inf, -0.0, 5e-324]}))["all"]
    assert repr(found) == "[nan, inf, -inf, -0.0, 5e-324]"


@given(st.data())
def test_damage_is_noticed(data: st.DataObject) -> None:
    packed = bytearray(pack({"trials": {"a": [1, 2]}}))
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptStateError, match="damaged"):
        unpack(bytes(packed))
    with pytest.raises(CorruptStateError, match="damaged"):
        unpack(b"")
