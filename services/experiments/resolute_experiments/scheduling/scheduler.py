"""The scheduler: assigns slots to waiting trials and creates their runs."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Collection, Sequence

import structlog
from sqlalchemy.engine import Connection

from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute.contracts.clock import Clock
from resolute_engines.layout import layout, node_of
from resolute_engines.protocol import Placement, Pool
from resolute_experiments.allocations.fleet import Fleet
from resolute_experiments.allocations.run_spans import RunSpans
from resolute_experiments.scheduling import policy
from resolute_experiments.scheduling.pending_trials import pending_trials, without_pool
from resolute_experiments.scheduling.placement import EngineQueue, Inventory, SlotInventory
from resolute_experiments.scheduling.policy import Plan, SlotHolder
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.scheduling.waits import Waits
from resolute_experiments.states import RunOutcome, TrialEvent
from resolute_experiments.store import disabled_slots, experiments, runs, trials, wait_reasons
from resolute_experiments.timing import Timing
from resolute_experiments.topics import SCHEDULER_WAKEUP, SIGNAL_CHANGES, Topic
from resolute_experiments.transitions import transition_trial
from resolute_experiments.transitions.signals import SignalReason, allocation_id
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier
from resolute_serving.repetition import repeat

_TICK_SECONDS = 30.0
"""Between two passes without a request."""
_REST = 4.0
"""Time between two passes, in times of the last one."""
_LONGEST_REST_SECONDS = 0.25
_log = structlog.get_logger("scheduler")


class Scheduler:
    """Runs a pass over the queue whenever slots are freed or requested.

    Args:
        database: This service's database.
        fleet: The engines.
        notifier: Notified of changes.
        clock: Tells the time.
        wait_reasons: Receives why trials wait.
        preemption_timeout: Seconds for a preempted trial to checkpoint.
        spans: Receives the phases of runs.
    """

    def __init__(
        self,
        database: Database,
        *,
        fleet: Fleet,
        notifier: Notifier[Topic],
        clock: Clock,
        wait_reasons: WaitReasons,
        preemption_timeout: float,
        spans: RunSpans,
    ) -> None:
        self._spans = spans
        self._database = database
        self._fleet = fleet
        self._notifier = notifier
        self._clock = clock
        self._wait_reasons = wait_reasons
        self._preemption_timeout = preemption_timeout
        self._stopped = False
        self.last_pass_seconds = 0.0
        """Time that the last pass took."""

    def stop(self) -> None:
        """Starts no more runs from now on."""
        self._stopped = True

    async def run(self) -> None:
        """Schedules until the service stops."""
        failures = LoggedBackoff(_log, "a pass of the scheduler failed")
        await repeat(
            self._schedule_and_rest, notifier=self._notifier, topics=[SCHEDULER_WAKEUP], failures=failures
        )

    async def _schedule_and_rest(self) -> float:
        try:
            await self.schedule()
        finally:
            # Of a long queue a pass takes long: whatever happens, most of the time is left to others.
            await asyncio.sleep(min(self.last_pass_seconds * _REST, _LONGEST_REST_SECONDS))
        return _TICK_SECONDS

    async def schedule(self) -> None:
        """Makes passes until one starts nothing: each decides and writes in one transaction, then starts.

        What a pass would change is first asked of a snapshot, so that a long queue in which nothing moves
        does not block writers.
        """
        while not self._stopped and await self._database.read(trials.any_queued):
            began = self._clock.monotonic()
            plan = await self._database.read(self._plan)
            started: list[runs.Run] = []
            waits = plan.waits
            if plan.changes_something or self._wait_reasons.differ(waits):
                placed, given_up, waits = await self._database.write(self._assign)
                started = [run for run, _ in placed]
                for run, queued_at in placed:
                    self._spans.placed(run, queued_at=queued_at)
                self._notifier.notify(SIGNAL_CHANGES, *given_up)
            self._wait_reasons.update(waits)
            self.last_pass_seconds = self._clock.monotonic() - began
            if not started:
                break
            await self._fleet.launch_pending()

    def _plan(self, connection: Connection) -> Plan:
        running = runs.unfinalized(connection)
        scheduling_ranks = experiments.scheduling_ranks(connection, {run.experiment_id for run in running})
        holders: defaultdict[str, list[SlotHolder]] = defaultdict(list)
        for run in running:
            holders[run.resource_pool].append(_holder(run, scheduling_ranks[run.experiment_id]))
        held = policy.slots_by_workspace([holder for there in holders.values() for holder in there])
        disabled = disabled_slots.read(connection)
        plans: list[Plan] = []
        for pool in self._fleet.pools.all():
            machines = _inventory(pool, holders[pool.name], disabled.get(pool.name, {}))
            queue = pending_trials(
                connection,
                per_experiment=machines.room + 1,
                without_slots=machines.places + 1,
                pools=self._fleet.pools.names_of(pool),
            )
            plans.append(policy.plan(queue, holders[pool.name], machines, held_by_workspace=held))
            held = plans[-1].held_by_workspace
        return policy.together([*plans, *self._without_pool(connection)])

    def _without_pool(self, connection: Connection) -> list[Plan]:
        """Says of experiments whose pool is not there any more that this is what they wait for."""
        if not self._fleet.pools.named:
            return []
        plans = without_pool(connection, pools=[pool.name for pool in self._fleet.pools.all()])
        waits = Waits({name: wait_reasons.Wait(reason=_no_pool(pool)) for name, pool in plans.items()})
        return [Plan(placements=(), waits=waits)]

    def _assign(self, connection: Connection) -> tuple[list[tuple[runs.Run, float]], list[str], Waits]:
        """Writes a pass.

        Returns:
            The runs to be started with the times since when their trials waited, the experiments of which
            a trial was given up, and what the others wait for.
        """
        plan = self._plan(connection)
        given_up = [
            self._fail_unschedulable(connection, trial_id, reason)
            for trial_id, reason in plan.impossible.items()
        ]
        for allocation, urgent in plan.preemptions.items():
            trial = trials.get(connection, trial_id=runs.get(connection, allocation).trial_id)
            transition_trial(
                connection,
                trial,
                TrialEvent.PREEMPT,
                self._timing(),
                reason=SignalReason.SCHEDULER,
                detail=_room_for(trials.get(connection, trial_id=urgent)),
            )
        started = [
            (self._start(connection, trial, placement.slot_ids), trial.queued_at)
            for placement in plan.placements
            for trial in [trials.get(connection, trial_id=placement.trial_id)]
        ]
        wait_reasons.write(connection, plan.waits.by_experiment)
        return started, given_up, plan.waits

    def _fail_unschedulable(self, connection: Connection, trial_id: str, reason: str) -> str:
        trial = trials.get(connection, trial_id=trial_id)
        explanation = f"no machine is left for it: {reason}"
        transition_trial(
            connection, trial, TrialEvent.FAIL_UNSCHEDULABLE, self._timing(), explanation=explanation
        )
        _log.warning("trial has no machine left", trial=trial.number, reason=reason)
        return trial.experiment_id

    def _timing(self) -> Timing:
        return Timing(now=self._clock.time(), preemption_timeout=self._preemption_timeout)

    def _start(self, connection: Connection, trial: trials.Trial, slots: Sequence[int]) -> runs.Run:
        number = trial.run + 1
        allocation = allocation_id(trial.id, number)
        experiment = experiments.get(connection, experiment_id=trial.experiment_id)
        pool = self._fleet.pools.get(experiment.resource_pool)
        placements = layout(pool, slots)
        runs.insert(
            connection,
            {
                "trial_id": trial.id,
                "run": number,
                "allocation_id": allocation,
                "experiment_id": trial.experiment_id,
                "outcome": RunOutcome.UNSPECIFIED.value,
                "failure": "",
                "slot_ids": list(slots),
                "started_at": self._clock.time(),
                "trace_id": uuid.uuid4().hex,
                "signal_revision": 0,
                "preempt": False,
                "kill": False,
                "signal_reason": "",
                "acknowledged": False,
                "preemption_timeout": experiment.config.get("preemption_timeout"),
                "resource_pool": pool.name,
            },
            placements=placements,
            nodes=[node_of(pool, part) for part in placements],
            in_queue=pool.placement is Placement.ENGINE,
        )
        # As the last pass before this one reported it.
        reason = self._wait_reasons.last_reason(trial.id, trial.experiment_id)
        detail = f"until now: {reason}" if reason else ""
        guarded = trial.steps_completed if experiment.config.get("guard") else None
        transition_trial(
            connection, trial, TrialEvent.PLACE, self._timing(), detail=detail, guarded_steps=guarded
        )
        _log.info("trial starts", trial=trial.number, run=number, slots=list(slots))
        return runs.get(connection, allocation)


def _no_pool(name: str) -> str:
    return f"the settings have no resource pool {name!r} any more"


def _inventory(pool: Pool, holders: Sequence[SlotHolder], disabled: Collection[int]) -> Inventory:
    if pool.placement is Placement.ENGINE:
        return EngineQueue(max(pool.most_allocations - len(holders), 0), most=pool.most_allocations)
    return SlotInventory.with_taken(
        {slot.id: slot.node for slot in pool.slots},
        taken=(slot for holder in holders for slot in holder.slot_ids),
        disabled=disabled,
        most_without_slots=pool.most_without_slots,
        without_slots=sum(not holder.slot_ids for holder in holders),
    )


def _room_for(trial: trials.Trial) -> str:
    return f"makes room for trial {trial.number}, which is more urgent"


def _holder(run: runs.Run, rank: experiments.SchedulingRank) -> SlotHolder:
    return SlotHolder(
        allocation_id=run.allocation_id,
        experiment_id=run.experiment_id,
        slot_ids=run.slot_ids,
        workspace=rank.workspace,
        priority=rank.priority,
        preemptible=rank.preemptible,
        started_at=run.started_at,
        leaving=run.preempt or run.kill,
    )
