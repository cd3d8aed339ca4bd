"""Gauges of the experiments service for operators."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute_engines.protocol import Placement
from resolute_experiments.allocations.fleet import Fleet
from resolute_experiments.scheduling.scheduler import Scheduler
from resolute_experiments.states import RunOutcome, TrialState
from resolute_experiments.store import disabled_slots
from resolute_experiments.store.runs import unfinalized
from resolute_experiments.store.schema import experiments, outbox, runs, trials
from resolute_serving.database.engine import Database
from resolute_serving.observability.gauges import Gauge


class ServiceGauges:
    """Reads the gauges of the service.

    Args:
        database: This service's database.
        fleet: The engines.
        scheduler: The scheduler, for the duration of its passes.
        clock: Tells the time.
    """

    def __init__(self, database: Database, *, fleet: Fleet, scheduler: Scheduler, clock: Clock) -> None:
        self._database = database
        self._fleet = fleet
        self._scheduler = scheduler
        self._clock = clock

    async def gauges(self) -> Sequence[Gauge]:
        """Reads them.

        Raises:
            UnavailableError: The database cannot be reached.
        """
        return [
            *await self._database.gauges(),
            *await self._database.read(self._stored),
            Gauge(
                name="resolute_scheduler_pass_seconds",
                help="Time that the scheduler's last pass took.",
                value=self._scheduler.last_pass_seconds,
            ),
            Gauge(
                name="resolute_oldest_spool_seconds",
                help="How long reports or lines of some run have waited without any of them arriving.",
                value=await self._fleet.backlog_seconds(),
            ),
        ]

    def _stored(self, connection: Connection) -> list[Gauge]:
        # What engines with queues of their own hold is theirs to tell.
        pools = [pool for pool in self._fleet.pools.all() if pool.placement is Placement.OURS]
        known = {(pool.name, slot.id) for pool in pools for slot in pool.slots}
        held = {(run.resource_pool, slot) for run in unfinalized(connection) for slot in run.slot_ids} & known
        out_of_use = {
            (pool, slot) for pool, slots in disabled_slots.read(connection).items() for slot in slots
        }
        disabled = known & out_of_use - held
        slots = {"held": held, "disabled": disabled, "free": known - held - disabled}
        first = connection.execute(
            sa.select(sa.func.min(trials.c.queued_at)).where(trials.c.state == TrialState.QUEUED.value)
        ).scalar_one()
        return [
            *_by_state(connection, experiments, "resolute_experiments", "Experiments."),
            *_by_state(connection, trials, "resolute_trials", "Trials."),
            *[
                Gauge(name="resolute_slots", help="Slots.", value=len(counted), labels={"state": state})
                for state, counted in slots.items()
            ],
            Gauge(
                name="resolute_runs_under_way",
                help="Runs that were not settled.",
                value=connection.execute(
                    sa.select(sa.func.count()).where(runs.c.outcome == RunOutcome.UNSPECIFIED.value)
                ).scalar_one(),
            ),
            Gauge(
                name="resolute_oldest_queued_trial_seconds",
                help="How long some trial has waited for slots; zero when none waits.",
                value=0.0 if first is None else max(self._clock.time() - first, 0.0),
            ),
            Gauge(
                name="resolute_outbox_messages",
                help="Messages that wait to be delivered to other services.",
                value=connection.execute(sa.select(sa.func.count()).select_from(outbox)).scalar_one(),
            ),
        ]


def _by_state(connection: Connection, table: sa.Table, name: str, text: str) -> list[Gauge]:
    query = sa.select(table.c.state, sa.func.count()).group_by(table.c.state)
    return [
        Gauge(name=name, help=text, value=count, labels={"state": state})
        for state, count in connection.execute(query)
    ]
