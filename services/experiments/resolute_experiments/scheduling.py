"""Who gets which slots: first come, first served, and no one starves behind a small trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Request:
    """A trial that waits for slots."""

    trial_id: str
    experiment_id: str
    slots: int
    """Slots wanted; zero for an auxiliary task, which needs none."""
    max_slots: int | None
    """Slots that its whole experiment may hold; None for no limit."""


@dataclass(frozen=True)
class Placement:
    """Slots given to a trial."""

    trial_id: str
    slot_ids: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """What one pass of the scheduler decided."""

    placements: tuple[Placement, ...]
    """Who starts now, in order."""
    explanations: dict[str, str] = field(default_factory=dict)
    """Why each other trial waits, by UUID."""


def plan(queue: Sequence[Request], *, free: Sequence[int], held: dict[str, int], total: int) -> Plan:
    """Places the queue on free slots.

    The first trial that does not fit holds back those behind it, so that a large trial gets its turn; trials
    without slots, and those that only their experiment's limit holds back, hold back nobody.

    Args:
        queue: Waiting trials, longest first.
        free: Slots that nobody holds.
        held: Slots that each experiment holds now.
        total: Slots of the cluster.
    """
    remaining = sorted(free)
    holding = dict(held)
    placements: list[Placement] = []
    explanations: dict[str, str] = {}
    blocked_by = ""
    for request in queue:
        if request.slots == 0:
            placements.append(Placement(request.trial_id, ()))
            continue
        held_now = holding.get(request.experiment_id, 0)
        if request.max_slots is not None and held_now + request.slots > request.max_slots:
            explanations[request.trial_id] = (
                f"its experiment holds {held_now} of at most {request.max_slots} slots (resources.max_slots)"
            )
        elif blocked_by:
            explanations[request.trial_id] = f"waits behind {blocked_by}"
        elif request.slots > len(remaining):
            want = f"needs {request.slots} slots, {len(remaining)} of {total} are free"
            explanations[request.trial_id] = want
            blocked_by = f"a trial that {want}"
        else:
            chosen, remaining = remaining[: request.slots], remaining[request.slots :]
            holding[request.experiment_id] = held_now + request.slots
            placements.append(Placement(request.trial_id, tuple(chosen)))
    return Plan(tuple(placements), explanations)
