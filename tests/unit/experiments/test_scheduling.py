"""First come, first served, and nobody starves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from resolute_experiments.scheduling import Placement, Request, plan


def request(name: str, slots: int, *, experiment: str = "e", max_slots: int | None = None) -> Request:
    return Request(trial_id=name, experiment_id=experiment, slots=slots, max_slots=max_slots)


def test_trials_get_slots_in_the_order_of_the_queue() -> None:
    result = plan([request("a", 1), request("b", 1), request("c", 1)], free=[4, 2], held={}, total=3)
    assert result.placements == (Placement("a", (2,)), Placement("b", (4,)))
    assert result.explanations["c"] == "needs 1 slots, 0 of 3 are free"


def test_large_trial_holds_back_smaller_ones_behind_it() -> None:
    result = plan([request("large", 2), request("small", 1)], free=[0], held={}, total=2)
    assert result.placements == ()
    assert result.explanations["large"] == "needs 2 slots, 1 of 2 are free"
    assert "waits behind" in result.explanations["small"]


def test_task_without_slots_starts_even_when_nothing_is_free() -> None:
    result = plan([request("large", 2), request("aux", 0)], free=[], held={}, total=2)
    assert result.placements == (Placement("aux", ()),)


def test_experiment_at_its_own_limit_holds_back_nobody_else() -> None:
    queue = [request("a", 1, experiment="x", max_slots=1), request("b", 1, experiment="y")]
    result = plan(queue, free=[0], held={"x": 1}, total=2)
    assert result.placements == (Placement("b", (0,)),)
    assert "max_slots" in result.explanations["a"]


@given(
    wanted=st.lists(st.integers(0, 4), max_size=12),
    free=st.sets(st.integers(0, 7), max_size=8),
)
def test_no_slot_is_given_twice_and_everyone_is_placed_or_told_why(wanted: list[int], free: set[int]) -> None:
    queue = [request(str(i), slots) for i, slots in enumerate(wanted)]
    result = plan(queue, free=sorted(free), held={}, total=8)
    given_out = [slot for placement in result.placements for slot in placement.slot_ids]
    assert len(given_out) == len(set(given_out))
    assert set(given_out) <= free
    placed = {placement.trial_id for placement in result.placements}
    assert placed | set(result.explanations) == {request.trial_id for request in queue}
    assert not placed & set(result.explanations)
