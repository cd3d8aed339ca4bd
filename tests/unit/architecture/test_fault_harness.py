"""What the fault harness lets pass, and what it does not."""

from __future__ import annotations

from faults.harness.invariants import are_last


def test_what_fell_with_a_node_is_the_end_of_what_was_made() -> None:
    assert are_last(["a", "b", "c"], [])
    assert are_last(["a", "b", "c"], ["b", "c"])
    assert not are_last(["a", "b", "c"], ["b"]), "what came after it has arrived"
    assert not are_last(["a", "b", "c"], ["a", "c"])
