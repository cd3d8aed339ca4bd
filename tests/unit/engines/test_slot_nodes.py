from __future__ import annotations

import pytest

from resolute.errors import InvalidArgumentError
from resolute_engines.layout import by_node
from resolute_engines.local.slots import assign_to_nodes
from resolute_engines.protocol import Slot, SlotKind


def slots(count: int) -> list[Slot]:
    return [Slot(number, SlotKind.CPU) for number in range(count)]


@pytest.mark.parametrize(
    ("count", "nodes", "expected"),
    [(2, 1, [0, 0]), (2, 2, [0, 1]), (5, 2, [0, 0, 0, 1, 1]), (4, 3, [0, 0, 1, 2])],
)
def test_slots_are_spread_over_nodes_in_rows(count: int, nodes: int, expected: list[int]) -> None:
    assert [slot.node for slot in assign_to_nodes(slots(count), nodes)] == expected


@pytest.mark.parametrize("nodes", [0, 3])
def test_every_node_has_a_slot(nodes: int) -> None:
    with pytest.raises(InvalidArgumentError, match="2 slots cannot be shared"):
        assign_to_nodes(slots(2), nodes)


def test_a_run_has_one_container_on_each_node_that_gives_it_slots() -> None:
    shared = assign_to_nodes(slots(5), 2)
    assert by_node(shared) == ((0, 1, 2), (3, 4))
    assert by_node([shared[4], shared[1]]) == ((1,), (4,))
    assert by_node([]) == ()
