from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute.errors import InvalidArgumentError
from resolute_checkpoints.domain.metadata import decode, encode, patched

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=6))
def test_metadata_comes_back_exactly(metadata: dict[str, object]) -> None:
    text = encode(metadata)
    assert decode(text) == metadata
    assert "\0" not in text


def test_integers_stay_apart_from_floats() -> None:
    assert repr(decode(encode({"a": 1, "b": 1.0}))) == "{'a': 1, 'b': 1.0}"


def test_a_patch_replaces_and_removes_keys_and_leaves_the_others() -> None:
    metadata = {"steps_completed": 3, "a": {"x": 1}, "b": 2, "kept_null": None}
    assert patched(metadata, {"a": {"y": 2}, "b": None, "c": [1], "unknown": None}) == {
        "steps_completed": 3,
        "a": {"y": 2},
        "kept_null": None,
        "c": [1],
    }


@pytest.mark.parametrize("patch", [{"steps_completed": None}, {"steps_completed": 4}])
def test_a_patch_cannot_change_the_steps(patch: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError, match="the steps of a commit cannot change"):
        patched({"steps_completed": 3}, patch)


def test_a_patch_may_repeat_the_steps() -> None:
    assert patched({"steps_completed": 3}, {"steps_completed": 3, "a": 1}) == {"steps_completed": 3, "a": 1}
