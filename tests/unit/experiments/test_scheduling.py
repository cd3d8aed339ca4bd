"""Urgent before patient, fair among equals, and nobody starves."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from resolute_experiments.scheduling.placement import Demand, EngineQueue, SlotInventory
from resolute_experiments.scheduling.policy import Placement, Plan, Request, Share, SlotHolder, plan
from resolute_experiments.scheduling.waits import BEHIND


def request(name: str, slots: int, experiment: str = "e", **share: object) -> Request:
    demand = Demand(slots=slots)
    return Request(trial_id=name, experiment_id=experiment, demand=demand, share=Share(**share))  # type: ignore[arg-type]


def holder(name: str, slots: int, experiment: str = "h", **more: object) -> SlotHolder:
    """One that holds slots; which ones is told by ``machines``."""
    return SlotHolder(allocation_id=name, experiment_id=experiment, slot_ids=(0,) * slots, **more)  # type: ignore[arg-type]


def made(queue: list[Request], holders: list[SlotHolder], free: list[int], total: int = 4) -> Plan:
    """The plan on one node of which some slots are free, and the others are held, in order."""
    machines = SlotInventory(dict.fromkeys(range(total), 0), frozenset(free))
    taken = iter(sorted(set(range(total)) - set(free)))
    holding = [replace(one, slot_ids=tuple(next(taken) for _ in one.slot_ids)) for one in holders]
    return plan(queue, holding, machines)


def placed(queue: list[Request], holders: list[SlotHolder], free: list[int], total: int = 4) -> list[str]:
    return [placement.trial_id for placement in made(queue, holders, free, total).placements]


def test_trials_of_one_experiment_get_slots_in_the_order_of_the_queue() -> None:
    result = made([request("a", 1), request("b", 1), request("c", 1)], [], free=[2, 1], total=3)
    assert result.placements == (Placement("a", (1,)), Placement("b", (2,)))
    assert result.waits.reason("c", "e") == "needs 1 slot, 0 of 3 are free"


def test_large_trial_holds_back_smaller_ones_behind_it() -> None:
    result = made([request("large", 2), request("small", 1)], [], free=[0], total=2)
    assert result.placements == ()
    assert result.waits.reason("large", "e") == "needs 2 slots, 1 of 2 are free"
    assert result.waits.reason("small", "e") == BEHIND


def test_the_reason_of_an_experiment_is_that_of_its_first_waiting_trial() -> None:
    queue = [
        request("a", 1, "x", max_slots=1),
        request("b", 2, "y"),
        request("c", 1, "y"),
        request("d", 1, "z"),
    ]
    result = made(queue, [holder("r", 1, "x")], free=[0], total=2)
    for first, experiment_id in (("a", "x"), ("b", "y"), ("d", "z")):
        assert result.waits.first_reason(experiment_id) == result.waits.reason(first, experiment_id)
    assert result.waits.first_reason("y") == "needs 2 slots, 1 of 2 are free"


def test_task_without_slots_starts_even_when_nothing_is_free() -> None:
    assert placed([request("large", 2), request("aux", 0)], [], free=[]) == ["aux"]


def test_trials_without_slots_wait_for_each_other_alone() -> None:
    queue = [request(name, 0, "x") for name in "abcd"] + [request("e", 1, "y"), request("f", 0, "z")]
    machines = SlotInventory.with_taken({0: 0}, most_without_slots=3, without_slots=1)
    result = plan(queue, [holder("r", 0, "x")], machines)
    # The experiment that has fewer of them is next, as with slots.
    assert [placement.trial_id for placement in result.placements] == ["f", "a", "e"]
    full = "waits for another trial without slots: 3 of them run at a time"
    assert result.waits.reason("b", "x") == full
    assert result.waits.reason("c", "x") == BEHIND
    assert plan(queue[:1], [], replace(machines, without_slots=4)).placements == ()
    urgent = plan([*queue, request("g", 0, "u", priority=1)], [], machines)
    assert [placement.trial_id for placement in urgent.placements] == ["g", "a", "e"]


def test_trials_without_slots_preempt_nobody() -> None:
    machines = SlotInventory.with_taken({0: 0}, taken=[0], most_without_slots=1, without_slots=1)
    holders = [holder("with", 1), holder("without", 0), holder("leaves", 0, leaving=True)]
    result = plan([request("a", 0, "x", priority=1), request("b", 1, "y", priority=1)], holders, machines)
    assert (result.placements, dict(result.preemptions)) == ((), {"with": "b"})
    leaving = [replace(one, slot_ids=(0,), leaving=True) for one in holders[:1]]
    alone = plan([request("a", 0, "x", priority=1)], leaving, machines)
    assert alone.waits.reason("a", "x") == "waits for another trial without slots: 1 of them run at a time"


def test_trials_without_slots_take_places_of_an_engines_queue_as_others_do() -> None:
    queue = [request("a", 0), request("b", 1), request("c", 0), request("d", 0)]
    result = plan(queue, [], EngineQueue(room=2, most=3))
    assert result.placements == (Placement("a", ()), Placement("b", (0,)))
    assert "it is given 3 at a time" in result.waits.reason("c", "e")
    assert result.waits.reason("d", "e") == BEHIND
    assert plan(queue, [], EngineQueue(room=0, most=3)).placements == ()


def test_experiments_of_a_workspace_share_its_quota_and_hold_back_nobody_else() -> None:
    vision = {"workspace": "vision", "workspace_slots": 2}
    queue = [request("a", 1, "x", **vision), request("b", 1, "y", **vision), request("c", 1, "z")]
    result = made(queue, [holder("r", 1, "x", workspace="vision")], free=[0, 1, 2])
    assert [placement.trial_id for placement in result.placements] == ["b", "c"]
    assert (
        result.waits.reason("a", "x")
        == "the experiments of workspace vision hold 2 of at most 2 slots (its quota)"
    )


def test_experiment_at_its_own_limit_holds_back_nobody_else() -> None:
    queue = [request("a", 1, "x", max_slots=1), request("b", 1, "y")]
    result = made(queue, [holder("r", 1, "x")], free=[0], total=2)
    assert result.placements == (Placement("b", (0,)),)
    assert result.waits.reason("a", "x") == "its experiment holds 1 of at most 1 slots (resources.max_slots)"


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
    result = made([request("a", 1, priority=20)], holders, free=[], total=4)
    assert result.preemptions == {"new": "a"}
    assert "1 more once less urgent trials have checkpointed" in result.waits.reason("a", "e")


def test_no_more_trials_are_preempted_than_needed_while_the_first_are_leaving() -> None:
    holders = [holder("leaving", 1, priority=80, leaving=True), holder("other", 1, priority=80)]
    assert made([request("a", 1, priority=20)], holders, free=[], total=2).preemptions == {}


def test_nobody_is_preempted_in_vain() -> None:
    holders = [holder("a", 1, priority=80), holder("b", 3, priority=10)]
    assert made([request("large", 4, priority=20)], holders, free=[], total=4).preemptions == {}


def test_commands_are_not_preempted() -> None:
    holders = [holder("command", 1, priority=80, preemptible=False), holder("trial", 1, priority=70)]
    assert list(made([request("a", 1, priority=20)], holders, free=[], total=2).preemptions) == ["trial"]


def test_equals_are_never_preempted() -> None:
    assert made([request("a", 1)], [holder("r", 1)], free=[], total=1).preemptions == {}


def test_disabled_slots_are_given_to_nobody_and_make_no_room() -> None:
    machines = SlotInventory.with_taken(dict.fromkeys(range(3), 0), taken=[1], disabled=[0, 1, 9])
    result = plan([request("a", 1), request("b", 1)], [], machines)
    assert result.placements == (Placement("a", (2,)),)
    assert result.waits.reason("b", "e") == "needs 1 slot, 0 of 1 are free (2 more are disabled)"
    patient = replace(holder("patient", 1, priority=80), slot_ids=(1,))
    assert plan([request("a", 2, priority=1)], [patient], machines).preemptions == {}


def test_trial_waits_for_disabled_slots_instead_of_failing() -> None:
    machines = SlotInventory.with_taken({0: 0, 1: 1}, disabled=[1])
    result = plan([demand(1, excluded={0})], [], machines)
    assert not result.impossible
    assert "1 more are disabled" in result.waits.reason("a", "e")


def test_a_whole_node_is_awaited_only_where_one_has_enough_enabled_slots() -> None:
    machines = SlotInventory.with_taken({slot: slot // 4 for slot in range(8)}, disabled=[0, 4])
    result = plan([demand(4)], [], machines)
    (placement,) = result.placements
    assert set(placement.slot_ids) <= {1, 2, 3, 5, 6, 7}


def demand(slots: int, *, single_node: bool | None = None, excluded: set[int] | None = None) -> Request:
    wanted = Demand(slots=slots, single_node=single_node, excluded=frozenset(excluded or ()))
    return Request(trial_id="a", experiment_id="e", demand=wanted, share=Share(priority=10))


def two_nodes(*free: int) -> SlotInventory:
    """Two nodes of four slots."""
    return SlotInventory({slot: slot // 4 for slot in range(8)}, frozenset(free))


def test_trial_that_fits_a_node_waits_for_one_and_is_told_so() -> None:
    result = plan([demand(4)], [], two_nodes(0, 1, 2, 4, 5))
    assert result.placements == ()
    assert result.waits.reason("a", "e") == "needs 4 slots on one node, 3 free; 5 of 8 in all"


def test_trial_that_may_be_split_is_and_one_larger_than_a_node_must_be() -> None:
    assert plan([demand(4, single_node=False)], [], two_nodes(0, 4, 5, 6)).placements[0].slot_ids == (
        4,
        5,
        6,
        0,
    )
    assert plan([demand(6)], [], two_nodes(*range(8))).placements[0].slot_ids == (0, 1, 2, 3, 4, 5)
    assert plan([demand(6)], [], two_nodes(*range(5))).placements == ()


def test_small_trial_takes_the_fullest_node_so_that_a_large_one_finds_room() -> None:
    assert plan([demand(1)], [], two_nodes(0, 1, 2, 3, 7)).placements[0].slot_ids == (7,)


def test_excluded_node_is_not_used_and_without_another_the_trial_is_given_up() -> None:
    assert plan([demand(2, excluded={0})], [], two_nodes(*range(8))).placements[0].slot_ids == (4, 5)
    waiting = plan([demand(2, excluded={0})], [], two_nodes(0, 1, 2))
    assert not waiting.impossible
    assert "node 0 is excluded by a log policy" in waiting.waits.reason("a", "e")
    assert list(plan([demand(2, excluded={0, 1})], [], two_nodes(*range(8))).impossible) == ["a"]
    assert list(plan([demand(6, excluded={0})], [], two_nodes(*range(8))).impossible) == ["a"]


def test_room_is_made_on_one_node_by_as_few_as_possible() -> None:
    holders = [
        SlotHolder(allocation_id=f"small{slot}", experiment_id="h", slot_ids=(slot,), priority=90)
        for slot in range(4)
    ]
    holders.append(SlotHolder(allocation_id="large", experiment_id="h", slot_ids=(4, 5, 6, 7), priority=80))
    assert plan([demand(4)], holders, two_nodes()).preemptions.keys() == {"large"}
    assert len(plan([demand(4)], holders[:4], two_nodes(4, 5, 6)).preemptions) == 4


def test_nobody_is_preempted_for_whom_another_makes_room_as_well() -> None:
    holders = [
        SlotHolder(allocation_id="small", experiment_id="h", slot_ids=(0,), priority=99),
        SlotHolder(allocation_id="large", experiment_id="h", slot_ids=(1, 2, 3), priority=90),
    ]
    assert plan([demand(3)], holders, two_nodes()).preemptions.keys() == {"large"}
    assert plan([demand(4)], holders, two_nodes()).preemptions.keys() == {"small", "large"}


def test_only_slots_that_come_free_where_the_trial_goes_are_told_of() -> None:
    holders = [
        SlotHolder(allocation_id="far", experiment_id="h", slot_ids=(4, 5), priority=1, leaving=True),
        SlotHolder(allocation_id="near", experiment_id="h", slot_ids=(0, 1, 2, 3), priority=90),
        SlotHolder(allocation_id="other", experiment_id="h", slot_ids=(6, 7), priority=1),
    ]
    assert "4 more once" in plan([demand(4)], holders, two_nodes()).waits.reason("a", "e")


NODES = 3
REQUESTS = st.lists(
    st.builds(
        Request,
        trial_id=st.uuids().map(str),
        experiment_id=st.sampled_from("xyz"),
        demand=st.builds(
            Demand,
            slots=st.integers(0, 5),
            single_node=st.sampled_from([None, True, False]),
            excluded=st.frozensets(st.integers(0, NODES - 1), max_size=2),
        ),
        share=st.builds(
            Share,
            max_slots=st.none() | st.integers(0, 6),
            priority=st.integers(1, 99),
            weight=st.sampled_from([0.5, 1.0, 3.0]),
        ),
    ),
    max_size=12,
    unique_by=lambda one: one.trial_id,
)
HELD = st.lists(
    st.tuples(st.sampled_from("xyz"), st.integers(0, 3), st.integers(1, 99), st.booleans()), max_size=4
)


@given(queue=REQUESTS, held=HELD, free=st.integers(0, 9))
def test_no_slot_is_given_twice_and_everyone_is_placed_or_told_why(
    queue: list[Request], held: list[tuple[str, int, int, bool]], free: int
) -> None:
    nodes = {slot: slot % NODES for slot in range(9)}
    taken = iter(range(free, 9))
    holders = [
        SlotHolder(
            allocation_id=str(number),
            experiment_id=experiment,
            slot_ids=tuple(islice(taken, count)),
            priority=priority,
            leaving=leaving,
        )
        for number, (experiment, count, priority, leaving) in enumerate(held)
    ]
    machines = SlotInventory.with_taken(nodes, taken=(slot for one in holders for slot in one.slot_ids))
    result = plan(queue, holders, machines)
    given_out = [slot for placement in result.placements for slot in placement.slot_ids]
    assert len(given_out) == len(set(given_out))
    assert set(given_out) <= machines.free
    by_name = {one.trial_id: one for one in queue}
    for placement in result.placements:
        wanted = by_name[placement.trial_id].demand
        used = {nodes[slot] for slot in placement.slot_ids}
        assert len(placement.slot_ids) == wanted.slots
        assert not used & wanted.excluded
        assert not wanted.single_node or len(used) <= 1
    names = {placement.trial_id for placement in result.placements}
    assert not names & set(result.impossible)
    assert all(
        result.waits.reason(name, one.experiment_id) for name, one in by_name.items() if name not in names
    )
    assert not set(result.preemptions) & {one.allocation_id for one in holders if one.leaving}
