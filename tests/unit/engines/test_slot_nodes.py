from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from resolute.client.schema.records import SlotRecord
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.errors import InvalidArgumentError
from resolute_engines.kit.run_directories.container import RunContainer
from resolute_engines.layout import by_node
from resolute_engines.local.engine import LocalEngine
from resolute_engines.local.slots import assign_to_nodes
from resolute_engines.protocol import AllocationSpec, Slot, SlotKind


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


class CapturedError(Exception):
    """Ends a launch once its order is written."""


def test_a_task_knows_its_machine_by_the_name_that_lists_and_commands_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = list[LaunchOrder]()

    def capture(_: RunContainer, order: LaunchOrder, __: object) -> None:
        orders.append(order)
        raise CapturedError

    monkeypatch.setattr(RunContainer, "start", capture)
    engine = LocalEngine(tmp_path / "runs", slots=4, nodes=2, pool="gpus")
    (pool,) = engine.pools()
    for slot in (None, *pool.slots):
        placement = () if slot is None else (slot.id,)
        spec = AllocationSpec(allocation_id="1.1", placements=(placement,), address="h:1", token="t")
        with pytest.raises(CapturedError):
            asyncio.run(engine.launch(spec))
        node = 0 if slot is None else slot.node
        listed = SlotRecord(0, "cpu", "", 0, node=node, resource_pool="gpus").machine_name
        assert orders[-1].agent_id == listed
    assert {order.agent_id for order in orders} == {"gpus/0", "gpus/1"}
