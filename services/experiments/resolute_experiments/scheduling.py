"""Who gets which slots, as one pure function of who waits, who runs and what is free.

The more urgent priority comes first. Among equals the experiment with the smaller share of slots for its
weight is next, and within an experiment it is first come, first served. Whoever is next and does not fit
holds back everyone behind, so that a large trial gets its turn; it may take slots from less urgent trials,
which then checkpoint and queue again. Trials without slots, and those that only their experiment's own limit
holds back, hold back nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

DEFAULT_PRIORITY = 42
"""Priority of experiments that name none; 1 is the most urgent, 99 the least."""
BEHIND = (
    "waits in the queue behind a trial that is more urgent, earlier, or of an experiment with fewer slots"
)
"""Why a trial waits that is not next. It names no numbers, so that a moving queue does not rewrite it."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A trial that waits for slots."""

    trial_id: str
    experiment_id: str
    slots: int
    """Slots wanted; zero for an auxiliary task, which needs none."""
    max_slots: int | None = None
    """Slots that its whole experiment may hold; None for no limit."""
    priority: int = DEFAULT_PRIORITY
    """Urgency from 1 (most) to 99."""
    weight: float = 1.0
    """Share of its experiment among others of the same priority."""


@dataclass(frozen=True, kw_only=True)
class Holder:
    """An allocation that holds slots."""

    allocation_id: str
    experiment_id: str
    slots: int
    priority: int = DEFAULT_PRIORITY
    started_at: float = 0.0
    """When it got them, Unix seconds."""
    leaving: bool = False
    """Whether it was asked already to checkpoint and exit."""


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
    preemptions: tuple[str, ...] = ()
    """Allocations that must make room for more urgent trials."""
    explanations: dict[str, str] = field(default_factory=dict)
    """Why each other trial waits, by UUID."""


def plan(queue: Sequence[Request], holders: Sequence[Holder], *, free: Sequence[int], total: int) -> Plan:
    """Makes one pass over the queue.

    Args:
        queue: Waiting trials, longest first.
        holders: Allocations that hold slots.
        free: Slots that nobody holds.
        total: Slots of the cluster.
    """
    return _Pass(holders, free=free, total=total).run(queue)


class _Pass:
    def __init__(self, holders: Sequence[Holder], *, free: Sequence[int], total: int) -> None:
        self._holders = holders
        self._free = sorted(free)
        self._total = total
        self._held: dict[str, int] = {}
        for holder in holders:
            self._held[holder.experiment_id] = self._held.get(holder.experiment_id, 0) + holder.slots
        self._placements: list[Placement] = []
        self._preemptions: list[str] = []
        self._explanations: dict[str, str] = {}

    def run(self, queue: Sequence[Request]) -> Plan:
        waiting: dict[str, deque[tuple[int, Request]]] = {}
        for position, request in enumerate(queue):
            if request.slots == 0:
                self._placements.append(Placement(request.trial_id, ()))
            else:
                waiting.setdefault(request.experiment_id, deque()).append((position, request))
        while waiting:
            experiment_id = min(waiting, key=lambda key: self._turn(*waiting[key][0]))
            request = waiting[experiment_id][0][1]
            if self._at_own_limit(request):
                self._explain_limit(waiting.pop(experiment_id))
            elif request.slots <= len(self._free):
                self._place(request)
                waiting[experiment_id].popleft()
                if not waiting[experiment_id]:
                    del waiting[experiment_id]
            else:
                self._hold_back(request, waiting)
                break
        return Plan(tuple(self._placements), tuple(self._preemptions), self._explanations)

    def _turn(self, position: int, request: Request) -> tuple[int, float, int]:
        share = self._held.get(request.experiment_id, 0) / request.weight
        return request.priority, share, position

    def _at_own_limit(self, request: Request) -> bool:
        held = self._held.get(request.experiment_id, 0)
        return request.max_slots is not None and held + request.slots > request.max_slots

    def _explain_limit(self, requests: Sequence[tuple[int, Request]]) -> None:
        for _, request in requests:
            held = self._held.get(request.experiment_id, 0)
            limit = f"its experiment holds {held} of at most {request.max_slots} slots (resources.max_slots)"
            self._explanations[request.trial_id] = limit

    def _place(self, request: Request) -> None:
        chosen, self._free = self._free[: request.slots], self._free[request.slots :]
        self._held[request.experiment_id] = self._held.get(request.experiment_id, 0) + request.slots
        self._placements.append(Placement(request.trial_id, tuple(chosen)))

    def _hold_back(self, request: Request, waiting: dict[str, deque[tuple[int, Request]]]) -> None:
        for requests in waiting.values():
            for _, behind in requests:
                self._explanations[behind.trial_id] = BEHIND
        coming = self._make_room(request)
        reason = f"needs {request.slots} slots, {len(self._free)} of {self._total} are free"
        if coming:
            reason += f", {coming} more once less urgent trials have checkpointed"
        self._explanations[request.trial_id] = reason

    def _make_room(self, request: Request) -> int:
        """Chooses whom to preempt; returns the slots that come free, zero if they are not enough."""
        coming = sum(holder.slots for holder in self._holders if holder.leaving)
        victims: list[Holder] = []
        candidates = [h for h in self._holders if not h.leaving and h.slots and h.priority > request.priority]
        for holder in sorted(candidates, key=lambda holder: (-holder.priority, -holder.started_at)):
            if len(self._free) + coming >= request.slots:
                break
            victims.append(holder)
            coming += holder.slots
        if len(self._free) + coming < request.slots:
            return 0
        self._preemptions = [victim.allocation_id for victim in victims]
        return coming
