"""Parses the slots that a request names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from resolute_engines.protocol import Placement
from resolute_experiments.allocations.fleet import Fleet
from resolute_serving.validation import invalid


@dataclass(frozen=True, kw_only=True)
class NamedSlots:
    """Slots of one pool."""

    pool: str
    """Name of the pool."""
    slot_ids: frozenset[int]
    """Their numbers; one at least."""


def named_slots(fleet: Fleet, slot_ids: Sequence[int], *, pool_name: str) -> NamedSlots:
    """The slots that a request wants to take out of use or put into it.

    Args:
        fleet: The machines.
        slot_ids: Their numbers in the pool.
        pool_name: Name of the pool; empty for the default one.

    Raises:
        InvalidArgumentError: There is no such pool or slot, none is named, or the pool's engine gives out its
            slots by itself.
    """
    pools = {pool.name: pool for pool in fleet.pools.all()}
    pool = pools.get(pool_name or fleet.pools.default)
    if pool is None:
        there = ", ".join(sorted(pools))
        raise invalid("resource_pool", f"found {pool_name!r}; expected one of the pools: {there}")
    if pool.placement is Placement.ENGINE:
        raise invalid(
            "resource_pool",
            f"the engine of pool {pool.name!r} assigns its slots itself: they cannot be disabled or "
            f"enabled here; take a node out of use by {pool.taken_out_by}",
        )
    known, named = {slot.id for slot in pool.slots}, frozenset(slot_ids)
    if not named:
        raise invalid("slot_ids", "slot_ids is empty: name the slots")
    if unknown := sorted(named - known):
        last = len(known) - 1
        raise invalid("slot_ids", f"there is no slot {unknown[0]}; pool {pool.name!r} has 0 to {last}")
    return NamedSlots(pool=pool.name, slot_ids=named)
