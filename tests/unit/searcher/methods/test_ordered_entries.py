"""Entries in blocks stand as in one sorted list, and no block grows with their number."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute_searcher.methods.successive_halving import ordered_entries
from resolute_searcher.methods.successive_halving.ordered_entries import OrderedEntries, RungEntry

STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=120)


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    """A few entries make many blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered_entries, "_BLOCK", 4)
        yield


@given(STEPS)
def test_they_stand_as_in_one_sorted_list(steps: list[tuple[bool, int]]) -> None:
    entries, listed = OrderedEntries(), list[RungEntry]()
    for number, (adds, value) in enumerate(steps):
        if adds or not listed:
            entry = RungEntry(float(value), number, f"t{number}")
            entries.add(entry)
            insort(listed, entry)
        else:
            entry = listed.pop(value % len(listed))
            entries.remove(entry)
        assert list(entries) == listed
        assert len(entries) == len(listed)
        assert [entries.place(one) for one in listed] == list(range(len(listed)))
        assert [entries[place] for place in range(len(listed))] == listed
    assert list(OrderedEntries(listed)) == listed


@given(st.lists(st.integers(0, 10**6), max_size=200))
def test_no_block_grows_with_their_number(values: list[int]) -> None:
    entries = OrderedEntries()
    for number, value in enumerate(values):
        entries.add(RungEntry(float(value), number, f"t{number}"))
    assert max(map(len, entries._blocks), default=0) <= ordered_entries._BLOCK


def test_a_place_beyond_the_last_is_refused() -> None:
    with pytest.raises(IndexError):
        OrderedEntries([RungEntry(0.0, 1, "t")])[1]
