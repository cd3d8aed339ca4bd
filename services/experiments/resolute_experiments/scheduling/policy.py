"""The scheduling policy: a pure function of waiting trials, running trials and free slots.

The more urgent priority comes first. Among equal priorities, the experiment with fewer slots for its weight
is next; within an experiment, trials are served in order. If the next trial does not fit, all trials behind
it wait, so that a large trial gets its turn. It may preempt less urgent trials, which then checkpoint and
return to the queue.

Trials that wait only because of a limit of their experiment or workspace do not hold back others. If the
scheduler assigns the slots, trials without slots have a limit of their own, which they share by the same
rules; they preempt no trial. ``placement`` chooses the slots of a trial.
"""

from __future__ import annotations

from collections import ChainMap, Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from resolute.contracts.priorities import DEFAULT_PRIORITY
from resolute_experiments.scheduling.placement import Demand, Inventory
from resolute_experiments.scheduling.waits import Waits
from resolute_experiments.store.wait_reasons import Wait


@dataclass(frozen=True, kw_only=True)
class Share:
    """The limits, priority and weight of an experiment."""

    max_slots: int | None = None
    """Slots that the whole experiment may hold; None for no limit."""
    priority: int = DEFAULT_PRIORITY
    """Urgency from 1 (most) to 99."""
    weight: float = 1.0
    """Share among other experiments of the same priority."""
    workspace: str = ""
    """The workspace that the experiment belongs to."""
    workspace_slots: int | None = None
    """Slots that all experiments of its workspace may hold together; None for no limit."""

    def sort_key(self, held: int) -> tuple[int, float]:
        """Orders experiments: the lesser comes first.

        Args:
            held: Slots that the experiment holds; of one without slots, how many of its trials run.
        """
        return self.priority, held / self.weight


@dataclass(frozen=True, kw_only=True)
class Request:
    """A trial that waits for slots."""

    trial_id: str
    experiment_id: str
    demand: Demand
    """The slots that it wants."""
    share: Share = field(default_factory=Share)
    """Its experiment's."""


@dataclass(frozen=True, kw_only=True)
class SlotHolder:
    """An allocation that holds slots."""

    allocation_id: str
    experiment_id: str
    slot_ids: tuple[int, ...]
    workspace: str = ""
    priority: int = DEFAULT_PRIORITY
    started_at: float = 0.0
    """When it got them, Unix seconds."""
    preemptible: bool = True
    """Whether it leaves for something more urgent."""
    leaving: bool = False
    """Whether it was asked already to checkpoint and exit."""


@dataclass(frozen=True)
class Placement:
    """The slots assigned to a trial."""

    trial_id: str
    slot_ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The decisions of one pass of the scheduler."""

    placements: tuple[Placement, ...]
    """Who starts now, in order."""
    preemptions: Mapping[str, str] = field(default_factory=dict)
    """Allocations that must make room, with the more urgent trial that each makes room for, by UUID."""
    impossible: Mapping[str, str] = field(default_factory=dict)
    """Trials that no machine left to them can ever run, with the reason."""
    waits: Waits = field(default_factory=Waits)
    """What the others wait for."""
    held_by_workspace: Mapping[str, int] = field(default_factory=dict)
    """Slots that each workspace holds once those who start now have begun."""

    @property
    def changes_something(self) -> bool:
        """Whether a trial starts, makes room or is given up; else only what they wait for can be new."""
        return bool(self.placements or self.preemptions or self.impossible)


def plan(
    queue: Sequence[Request],
    holders: Sequence[SlotHolder],
    machines: Inventory,
    *,
    held_by_workspace: Mapping[str, int] | None = None,
) -> Plan:
    """Makes one pass over the queue of a pool.

    Args:
        queue: Waiting trials, longest first. Of each experiment it must hold as many as there are free slots,
            or places for trials without slots, and one more: those behind cannot be reached by this pass.
        holders: Allocations that hold slots.
        machines: All slots, and which are free.
        held_by_workspace: Slots that each workspace holds, in every pool; None where there is no other.
    """
    if held_by_workspace is None:
        held_by_workspace = slots_by_workspace(holders)
    return _Pass(holders, machines, held_by_workspace).run(queue)


def slots_by_workspace(holders: Sequence[SlotHolder]) -> Mapping[str, int]:
    """Counts the slots that each workspace holds."""
    held: Counter[str] = Counter()
    for holder in holders:
        held[holder.workspace] += len(holder.slot_ids)
    return held


def together(plans: Sequence[Plan]) -> Plan:
    """Makes one plan of those of several pools, which have no experiment in common."""
    if len(plans) == 1:
        return plans[0]
    return Plan(
        placements=tuple(placement for plan in plans for placement in plan.placements),
        preemptions=dict(ChainMap(*(dict(plan.preemptions) for plan in plans))),
        impossible=dict(ChainMap(*(dict(plan.impossible) for plan in plans))),
        waits=Waits(dict(ChainMap(*(dict(plan.waits.by_experiment) for plan in plans)))),
    )


class _Pass:
    def __init__(
        self, holders: Sequence[SlotHolder], machines: Inventory, held_by_workspace: Mapping[str, int]
    ) -> None:
        self._holders = holders
        self._machines = machines
        self._held: Counter[str] = Counter()
        self._without_slots: Counter[str] = Counter()
        self._held_by_workspace: Counter[str] = Counter(held_by_workspace)
        for holder in holders:
            self._held[holder.experiment_id] += len(holder.slot_ids)
            self._without_slots[holder.experiment_id] += not holder.slot_ids
        self._placements: list[Placement] = []
        self._preemptions: dict[str, str] = {}
        self._impossible: dict[str, str] = {}
        self._waits: dict[str, Wait] = {}

    def run(self, queue: Sequence[Request]) -> Plan:
        # Those without slots, where these take nothing from the others, wait for each other alone.
        for competes in (False, True):
            self._serve_in_turn([job for job in queue if self._machines.competes(job.demand) is competes])
        return Plan(
            placements=tuple(self._placements),
            preemptions=self._preemptions,
            impossible=self._impossible,
            waits=Waits(self._waits),
            held_by_workspace=self._held_by_workspace,
        )

    def _serve_in_turn(self, queue: Sequence[Request]) -> None:
        """Places trials until the one that is next has to wait."""
        waiting: dict[str, deque[tuple[int, Request]]] = {}
        for position, request in enumerate(queue):
            waiting.setdefault(request.experiment_id, deque()).append((position, request))
        while waiting:
            experiment_id = min(waiting, key=lambda key: self._sort_key(*waiting[key][0]))
            _, request = waiting[experiment_id][0]
            if self._at_a_limit(request):
                del waiting[experiment_id]
            elif not self._serve(request):
                break
            else:
                waiting[experiment_id].popleft()
                if not waiting[experiment_id]:
                    del waiting[experiment_id]

    def _sort_key(self, position: int, request: Request) -> tuple[tuple[int, float], int]:
        held = self._held if request.demand.slots else self._without_slots
        return request.share.sort_key(held[request.experiment_id]), position

    def _at_a_limit(self, request: Request) -> bool:
        share, wanted = request.share, request.demand.slots
        if not wanted:
            return False
        held, together = self._held[request.experiment_id], self._held_by_workspace[share.workspace]
        if share.max_slots is not None and held + wanted > share.max_slots:
            reason = f"its experiment holds {held} of at most {share.max_slots} slots (resources.max_slots)"
        elif share.workspace_slots is not None and together + wanted > share.workspace_slots:
            bound = f"at most {share.workspace_slots} slots (its quota)"
            reason = f"the experiments of workspace {share.workspace} hold {together} of {bound}"
        else:
            return False
        self._waits[request.experiment_id] = Wait(reason=reason)
        return True

    def _serve(self, request: Request) -> bool:
        """Places a trial that is next, or finds that it never can be; False when it must wait."""
        chosen = self._machines.choose(request.demand)
        if chosen is not None:
            self._machines = self._machines.without(chosen)
            self._held[request.experiment_id] += len(chosen)
            self._without_slots[request.experiment_id] += not chosen
            self._held_by_workspace[request.share.workspace] += len(chosen)
            self._placements.append(Placement(request.trial_id, chosen))
            return True
        if request.demand.excluded and not self._machines.is_feasible(request.demand):
            self._impossible[request.trial_id] = self._machines.explain(request.demand)
            return True
        victims, coming = self._make_room(request)
        self._preemptions = {victim.allocation_id: request.trial_id for victim in victims}
        reason = self._machines.explain(request.demand)
        if coming:
            reason += f", {coming} more once less urgent trials have checkpointed"
        self._waits[request.experiment_id] = Wait(reason=reason, trial_id=request.trial_id)
        return False

    def _make_room(self, request: Request) -> tuple[list[SlotHolder], int]:
        """Chooses whom to preempt, and counts the slots that come free; none and zero if it is in vain."""
        if not request.demand.slots:
            return [], 0
        leaving = [holder for holder in self._holders if holder.leaving]
        candidates = [
            holder
            for holder in self._holders
            if holder.preemptible
            and not holder.leaving
            and holder.slot_ids
            and holder.priority > request.share.priority
        ]
        candidates.sort(key=lambda holder: (-holder.priority, -holder.started_at))
        best: list[SlotHolder] | None = None
        coming = 0
        for nodes in self._machines.candidate_nodes(request.demand):
            victims = self._victims(request.demand, nodes, leaving, candidates)
            if victims is not None and (best is None or len(victims) < len(best)):
                best = victims
                there = self._machines.slots_of(nodes)
                coming = sum(len(there & {*holder.slot_ids}) for holder in [*leaving, *victims])
        return best or [], coming

    def _victims(
        self, demand: Demand, nodes: frozenset[int], leaving: list[SlotHolder], candidates: list[SlotHolder]
    ) -> list[SlotHolder] | None:
        """Whom to preempt so that a demand fits on some nodes; None if that does not suffice."""
        there = self._machines.slots_of(nodes)
        reachable = len(there & self._machines.free) + sum(len(there & {*h.slot_ids}) for h in leaving)
        victims: list[SlotHolder] = []
        for holder in candidates:
            if reachable >= demand.slots:
                break
            if gain := len(there & {*holder.slot_ids}):
                victims.append(holder)
                reachable += gain
        if reachable < demand.slots:
            return None
        # One that came later may have made an earlier one needless; the most urgent are spared first.
        for holder in reversed(victims[:-1]):
            gain = len(there & {*holder.slot_ids})
            if reachable - gain >= demand.slots:
                victims.remove(holder)
                reachable -= gain
        return victims
