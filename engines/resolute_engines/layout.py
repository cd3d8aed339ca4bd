"""Divides a run's slots into containers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from resolute_engines.protocol import Placement, Pool, Slot


def by_node(slots: Iterable[Slot]) -> tuple[tuple[int, ...], ...]:
    """Returns the ids of slots, one group for each node that has any of them: the containers of a run."""
    groups: dict[int, list[int]] = {}
    for slot in slots:
        groups.setdefault(slot.node, []).append(slot.id)
    return tuple(tuple(groups[node]) for node in sorted(groups))


def layout(pool: Pool, slot_ids: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The slots of each container of a run that is given these; without slots, one container."""
    if not slot_ids:
        return ((),)
    if pool.placement is Placement.ENGINE:
        size = pool.slots_per_node
        return tuple(tuple(slot_ids[first : first + size]) for first in range(0, len(slot_ids), size))
    given = set(slot_ids)
    return by_node(slot for slot in pool.slots if slot.id in given)


def node_of(pool: Pool, slot_ids: Sequence[int]) -> int:
    """The node of a container that has these slots; the first for one that has none."""
    return next((slot.node for slot in pool.slots if slot.id in slot_ids), 0)
