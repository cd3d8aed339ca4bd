"""Placement of a trial.

A trial gets all its slots at once: on one node if one is large enough, otherwise on as few nodes as possible.
If an engine chooses the machines itself, places in its queue replace the slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from resolute_engines.protocol import MOST_WITHOUT_SLOTS


@dataclass(frozen=True, kw_only=True)
class Demand:
    """The slots that a trial needs."""

    slots: int
    """How many; zero for an auxiliary task, which needs none."""
    single_node: bool | None = None
    """Whether they must be on one node. None leaves it to the cluster: one node if any is large enough."""
    excluded: frozenset[int] = frozenset()
    """Nodes that the trial must not use."""


class Inventory(Protocol):
    """The current capacity of a pool."""

    @property
    def free(self) -> frozenset[int]:
        """Free slots."""

    @property
    def room(self) -> int:
        """Most trials with slots that could be placed now."""

    @property
    def places(self) -> int:
        """Most trials without slots that could be placed now."""

    def without(self, taken: Iterable[int]) -> Inventory:
        """Returns the inventory without some slots, none of which a trial without slots takes."""

    def slots_of(self, nodes: frozenset[int]) -> frozenset[int]:
        """All slots of some nodes."""

    def competes(self, demand: Demand) -> bool:
        """Whether the demand takes slots or places that trials with slots could use."""

    def choose(self, demand: Demand) -> tuple[int, ...] | None:
        """Chooses slots for a demand, all of them or none."""

    def is_feasible(self, demand: Demand) -> bool:
        """Whether the demand would be met if all slots were free."""

    def candidate_nodes(self, demand: Demand) -> list[frozenset[int]]:
        """The sets of nodes, each of which meets the demand once all its slots are free. May be empty."""

    def explain(self, demand: Demand) -> str:
        """Describes what is missing for a demand that cannot be met now."""


@dataclass(frozen=True)
class EngineQueue:
    """The queue of an engine that chooses the machines: it has places for a number of allocations."""

    room: int
    """Allocations that it can be given now."""
    most: int
    """Allocations that it is given at a time."""
    free: frozenset[int] = frozenset()
    """No slot is known to be free."""

    @property
    def places(self) -> int:
        """As many as with slots: each allocation takes a place."""
        return self.room

    def without(self, taken: Iterable[int]) -> EngineQueue:
        """The same after an allocation was given to it."""
        return replace(self, room=self.room - 1)

    def slots_of(self, nodes: frozenset[int]) -> frozenset[int]:
        """None is known."""
        return frozenset()

    def competes(self, demand: Demand) -> bool:
        """An allocation without slots takes a place as others do."""
        return True

    def choose(self, demand: Demand) -> tuple[int, ...] | None:
        """Numbers the slots of a demand, if there is a place."""
        return tuple(range(demand.slots)) if self.room > 0 else None

    def is_feasible(self, demand: Demand) -> bool:
        """Whether a demand can ever be met; the engine says what it refuses."""
        return True

    def candidate_nodes(self, demand: Demand) -> list[frozenset[int]]:
        """None: who makes room for whom is decided by the engine."""
        return []

    def explain(self, demand: Demand) -> str:
        """Says why a demand waits here."""
        return f"waits here until the queue of its engine has a place: it is given {self.most} at a time"


@dataclass(frozen=True)
class SlotInventory:
    """All slots with their nodes, and the free slots."""

    nodes: Mapping[int, int]
    """The node of each slot."""
    free: frozenset[int]
    """Free slots that are not disabled."""
    disabled: frozenset[int] = frozenset()
    """Slots that are given to no trial now."""
    most_without_slots: int = MOST_WITHOUT_SLOTS
    """Allocations without slots that may run at a time."""
    without_slots: int = 0
    """How many of them run."""

    @classmethod
    def with_taken(
        cls,
        nodes: Mapping[int, int],
        *,
        taken: Iterable[int] = (),
        disabled: Iterable[int] = (),
        most_without_slots: int = MOST_WITHOUT_SLOTS,
        without_slots: int = 0,
    ) -> SlotInventory:
        """An inventory of which some slots are taken, and some disabled."""
        out_of_use = frozenset(nodes).intersection(disabled)
        return cls(
            nodes,
            frozenset(nodes) - frozenset(taken) - out_of_use,
            out_of_use,
            most_without_slots,
            without_slots,
        )

    @property
    def room(self) -> int:
        """Most trials with slots that could be placed now."""
        return len(self.free)

    @property
    def places(self) -> int:
        """Most trials without slots that could be placed now."""
        return max(self.most_without_slots - self.without_slots, 0)

    def without(self, taken: Iterable[int]) -> SlotInventory:
        """The same after some free slots were given away, or one more trial without slots was started."""
        given = frozenset(taken)
        if not given:
            return replace(self, without_slots=self.without_slots + 1)
        return replace(self, free=self.free - given)

    def slots_of(self, nodes: frozenset[int]) -> frozenset[int]:
        """All slots of some nodes, but for disabled ones."""
        return frozenset(slot for slot, node in self._enabled.items() if node in nodes)

    @cached_property
    def _enabled(self) -> Mapping[int, int]:
        return {slot: node for slot, node in self.nodes.items() if slot not in self.disabled}

    @cached_property
    def _node_sizes(self) -> Mapping[int, int]:
        sizes: dict[int, int] = {}
        for node in self._enabled.values():
            sizes[node] = sizes.get(node, 0) + 1
        return sizes

    @cached_property
    def _free_by_node(self) -> Mapping[int, list[int]]:
        free: dict[int, list[int]] = {node: [] for node in sorted(self._node_sizes)}
        for slot in sorted(self.free):
            free[self.nodes[slot]].append(slot)
        return free

    def competes(self, demand: Demand) -> bool:
        """Trials without slots take none that others want."""
        return demand.slots > 0

    def choose(self, demand: Demand) -> tuple[int, ...] | None:
        """Chooses free slots for a demand, all of them or none.

        On one node: the fullest that has room, so that large trials find empty ones. On several: the emptiest
        first, so that they are few.
        """
        if not demand.slots:
            return () if self.places > 0 else None
        usable = {node: slots for node, slots in self._free_by_node.items() if node not in demand.excluded}
        enough = [slots for slots in usable.values() if len(slots) >= demand.slots]
        if enough:
            return tuple(min(enough, key=len)[: demand.slots])
        if self._wants_one_node(demand):
            return None
        chosen: list[int] = []
        for slots in sorted(usable.values(), key=len, reverse=True):
            chosen += slots[: demand.slots - len(chosen)]
        return tuple(chosen) if len(chosen) == demand.slots else None

    def is_feasible(self, demand: Demand) -> bool:
        """Whether the demand would be met if every slot were free and enabled."""
        return SlotInventory(self.nodes, frozenset(self.nodes)).choose(demand) is not None

    def candidate_nodes(self, demand: Demand) -> list[frozenset[int]]:
        """The sets of nodes, each of which meets the demand once all its slots are free."""
        usable = [node for node in self._node_sizes if node not in demand.excluded]
        if self._wants_one_node(demand):
            return [frozenset({node}) for node in usable]
        return [frozenset(usable)]

    def explain(self, demand: Demand) -> str:
        """Describes what is missing for a demand that cannot be met now."""
        if not demand.slots:
            return f"waits for another trial without slots: {self.most_without_slots} of them run at a time"
        usable = {node: slots for node, slots in self._free_by_node.items() if node not in demand.excluded}
        free, total = sum(map(len, usable.values())), sum(self._node_sizes[node] for node in usable)
        left_out = f" ({len(self.disabled)} more are disabled)" if self.disabled else ""
        if demand.excluded:
            names = ", ".join(str(node) for node in sorted(demand.excluded))
            left_out += f" (node {names} is excluded by a log policy)"
        if self._wants_one_node(demand) and len(self._node_sizes) > 1:
            most = max(map(len, usable.values()), default=0)
            return f"needs {_slots(demand)} on one node, {most} free; {free} of {total} in all{left_out}"
        return f"needs {_slots(demand)}, {free} of {total} are free{left_out}"

    def _wants_one_node(self, demand: Demand) -> bool:
        if demand.single_node is not None:
            return demand.single_node
        usable = (size for node, size in self._node_sizes.items() if node not in demand.excluded)
        return demand.slots <= max(usable, default=0)


def _slots(demand: Demand) -> str:
    return "1 slot" if demand.slots == 1 else f"{demand.slots} slots"
