"""Urgent before patient, fair among equals, and nobody starves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from resolute_experiments.scheduling import BEHIND, Holder, Placement, Request, plan


def request(name: str, slots: int, experiment: str = "e", **more: object) -> Request:
    return Request(trial_id=name, experiment_id=experiment, slots=slots, **more)  # type: ignore[arg-type]


def holder(name: str, slots: int, experiment: str = "h", **more: object) -> Holder:
    return Holder(allocation_id=name, experiment_id=experiment, slots=slots, **more)  # type: ignore[arg-type]


def placed(queue: list[Request], holders: list[Holder], free: list[int], total: int = 4) -> list[str]:
    return [placement.trial_id for placement in plan(queue, holders, free=free, total=total).placements]


def test_trials_of_one_experiment_get_slots_in_the_order_of_the_queue() -> None:
    result = plan([request("a", 1), request("b", 1), request("c", 1)], [], free=[4, 2], total=3)
    assert result.placements == (Placement("a", (2,)), Placement("b", (4,)))
    assert result.explanations["c"] == "needs 1 slots, 0 of 3 are free"


def test_large_trial_holds_back_smaller_ones_behind_it() -> None:
    result = plan([request("large", 2), request("small", 1)], [], free=[0], total=2)
    assert result.placements == ()
    assert result.explanations == {"large": "needs 2 slots, 1 of 2 are free", "small": BEHIND}


def test_task_without_slots_starts_even_when_nothing_is_free() -> None:
    assert placed([request("large", 2), request("aux", 0)], [], free=[]) == ["aux"]


def test_experiment_at_its_own_limit_holds_back_nobody_else() -> None:
    queue = [request("a", 1, "x", max_slots=1), request("b", 1, "y")]
    result = plan(queue, [holder("r", 1, "x")], free=[0], total=2)
    assert result.placements == (Placement("b", (0,)),)
    assert result.explanations["a"] == "its experiment holds 1 of at most 1 slots (resources.max_slots)"


def test_more_urgent_trial_overtakes_an_earlier_one() -> None:
    queue = [request("early", 1, "x"), request("urgent", 1, "y", priority=1)]
    assert placed(queue, [], free=[0]) == ["urgent"]


def test_experiments_of_one_priority_share_slots_by_weight() -> None:
    queue = [request(f"x{i}", 1, "x") for i in range(6)]
    queue += [request(f"y{i}", 1, "y", weight=2.0) for i in range(6)]
    names = placed(queue, [], free=list(range(6)), total=6)
    assert sum(name.startswith("y") for name in names) == 4


def test_experiment_that_holds_more_waits_for_one_that_holds_less() -> None:
    queue = [request("x", 1, "x"), request("y", 1, "y")]
    assert placed(queue, [holder("r", 2, "x")], free=[0]) == ["y"]


def test_urgent_trial_takes_slots_from_the_least_urgent_and_latest() -> None:
    holders = [
        holder("urgent", 1, priority=10),
        holder("old", 1, priority=80, started_at=1.0),
        holder("new", 1, priority=80, started_at=2.0),
        holder("middle", 1, priority=50),
    ]
    result = plan([request("a", 1, priority=20)], holders, free=[], total=4)
    assert result.preemptions == ("new",)
    assert "1 more once less urgent trials have checkpointed" in result.explanations["a"]


def test_no_more_trials_are_preempted_than_needed_while_the_first_are_leaving() -> None:
    holders = [holder("leaving", 1, priority=80, leaving=True), holder("other", 1, priority=80)]
    assert plan([request("a", 1, priority=20)], holders, free=[], total=2).preemptions == ()


def test_nobody_is_preempted_in_vain() -> None:
    holders = [holder("a", 1, priority=80), holder("b", 3, priority=10)]
    assert plan([request("large", 4, priority=20)], holders, free=[], total=4).preemptions == ()


def test_equals_are_never_preempted() -> None:
    assert plan([request("a", 1)], [holder("r", 1)], free=[], total=1).preemptions == ()


REQUESTS = st.lists(
    st.builds(
        Request,
        trial_id=st.uuids().map(str),
        experiment_id=st.sampled_from("xyz"),
        slots=st.integers(0, 4),
        max_slots=st.none() | st.integers(0, 6),
        priority=st.integers(1, 99),
        weight=st.sampled_from([0.5, 1.0, 3.0]),
    ),
    max_size=12,
    unique_by=lambda made: made.trial_id,
)
HOLDERS = st.lists(
    st.builds(
        Holder,
        allocation_id=st.uuids().map(str),
        experiment_id=st.sampled_from("xyz"),
        slots=st.integers(0, 3),
        priority=st.integers(1, 99),
        leaving=st.booleans(),
    ),
    max_size=5,
)


@given(queue=REQUESTS, holders=HOLDERS, free=st.sets(st.integers(0, 7), max_size=8))
def test_no_slot_is_given_twice_and_everyone_is_placed_or_told_why(
    queue: list[Request], holders: list[Holder], free: set[int]
) -> None:
    result = plan(queue, holders, free=sorted(free), total=8)
    given_out = [slot for placement in result.placements for slot in placement.slot_ids]
    assert len(given_out) == len(set(given_out))
    assert set(given_out) <= free
    names = {placement.trial_id for placement in result.placements}
    assert names | set(result.explanations) == {made.trial_id for made in queue}
    assert not names & set(result.explanations)
    leaving = {holder.allocation_id for holder in holders if holder.leaving}
    assert not set(result.preemptions) & leaving
