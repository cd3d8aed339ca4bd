"""Gives slots to waiting trials and starts their runs."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import structlog
from sqlalchemy.engine import Connection

from resolute.clock import Clock
from resolute_experiments import scheduling
from resolute_experiments.conductor import SCHEDULE
from resolute_experiments.fleet import Fleet
from resolute_experiments.notifier import Notifier
from resolute_experiments.scheduling import Request
from resolute_experiments.signals import allocation_id
from resolute_experiments.states import RunOutcome, TrialState
from resolute_experiments.store import experiments, runs, trials
from resolute_serving.database import Database

_TICK_SECONDS = 5.0
_log = structlog.get_logger("scheduler")


class Scheduler:
    """Runs a pass over the queue whenever slots are freed or asked for.

    Args:
        database: This service's database.
        fleet: The machines.
        notifier: Tells of changes.
        clock: Tells the time.
    """

    def __init__(self, database: Database, *, fleet: Fleet, notifier: Notifier, clock: Clock) -> None:
        self._database = database
        self._fleet = fleet
        self._notifier = notifier
        self._clock = clock
        self._stopped = False

    def stop(self) -> None:
        """Starts no more runs from now on."""
        self._stopped = True

    async def run(self) -> None:
        """Schedules until the service stops."""
        with self._notifier.subscribe(SCHEDULE) as changes:
            while not self._notifier.closed:
                try:
                    await self.schedule()
                except Exception:  # noqa: BLE001 - a defect must not end scheduling for good
                    _log.exception("a pass of the scheduler failed")
                await changes.wait(_TICK_SECONDS)

    async def schedule(self) -> None:
        """Makes one pass: decides and writes in one transaction, then starts what was decided."""
        if self._stopped or not await self._database.read(trials.queued_count):
            return
        started = await self._database.write(self._assign)
        for run in started:
            await self._fleet.launch(run)
            self._notifier.notify(run.experiment_id)

    def _assign(self, connection: Connection) -> list[runs.Run]:
        queue = trials.queued(connection)
        by_id = {trial.id: trial for trial in queue}
        running = runs.unsettled(connection)
        plan = scheduling.plan(
            self._requests(connection, queue),
            free=self._free(running),
            held=_held(running),
            total=self._fleet.slot_count,
        )
        for trial_id, explanation in plan.explanations.items():
            if by_id[trial_id].explanation != explanation:
                trials.update(connection, by_id[trial_id], explanation=explanation)
        return [
            self._start(connection, by_id[placement.trial_id], placement.slot_ids)
            for placement in plan.placements
        ]

    def _requests(self, connection: Connection, queue: Sequence[trials.Trial]) -> list[Request]:
        owners = {
            experiment_id: experiments.get(connection, experiment_id=experiment_id)
            for experiment_id in {trial.experiment_id for trial in queue}
        }
        return [
            Request(
                trial_id=trial.id,
                experiment_id=trial.experiment_id,
                slots=owners[trial.experiment_id].slots_per_trial,
                max_slots=owners[trial.experiment_id].max_slots,
            )
            for trial in queue
        ]

    def _free(self, running: Sequence[runs.Run]) -> list[int]:
        taken = {slot for run in running for slot in run.slot_ids}
        return [slot for slot in self._fleet.slot_ids if slot not in taken]

    def _start(self, connection: Connection, trial: trials.Trial, slots: Sequence[int]) -> runs.Run:
        number = trial.run + 1
        allocation = allocation_id(trial.id, number)
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
            },
            placements=[slots],
        )
        trials.update(
            connection, trial, run=number, state=TrialState.STARTING.value, explanation="", status=""
        )
        _log.info("trial starts", trial=trial.number, run=number, slots=list(slots))
        return runs.get(connection, allocation)


def _held(running: Sequence[runs.Run]) -> dict[str, int]:
    held: dict[str, int] = {}
    for run in running:
        held[run.experiment_id] = held.get(run.experiment_id, 0) + len(run.slot_ids)
    return held
