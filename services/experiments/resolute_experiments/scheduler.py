"""Gives slots to waiting trials and starts their runs."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import structlog
from sqlalchemy.engine import Connection

from resolute.clock import Clock
from resolute_experiments import scheduling, signals
from resolute_experiments.attempts import Attempts
from resolute_experiments.conductor import SCHEDULE, SIGNALS
from resolute_experiments.fleet import Fleet
from resolute_experiments.lifecycle import Moment
from resolute_experiments.notifier import Notifier
from resolute_experiments.scheduling import Holder, Request
from resolute_experiments.signals import Reason, allocation_id
from resolute_experiments.states import RunOutcome, TrialState
from resolute_experiments.store import experiments, runs, trials
from resolute_experiments.store.experiments import Experiment
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
        preemption_timeout: Seconds that trials get to checkpoint when they must make room.
    """

    def __init__(
        self,
        database: Database,
        *,
        fleet: Fleet,
        notifier: Notifier,
        clock: Clock,
        preemption_timeout: float,
    ) -> None:
        self._database = database
        self._fleet = fleet
        self._notifier = notifier
        self._clock = clock
        self._preemption_timeout = preemption_timeout
        self._stopped = False

    def stop(self) -> None:
        """Starts no more runs from now on."""
        self._stopped = True

    async def run(self) -> None:
        """Schedules until the service stops."""
        attempts = Attempts(_log, "a pass of the scheduler failed")
        with self._notifier.subscribe(SCHEDULE) as changes:
            while not self._notifier.closed:
                try:
                    await self.schedule()
                    attempts.succeeded()
                    pause = _TICK_SECONDS
                except Exception as failure:  # noqa: BLE001 - a defect must not end scheduling for good
                    pause = attempts.failed(failure)
                await changes.wait(pause)

    async def schedule(self) -> None:
        """Makes one pass: decides and writes in one transaction, then starts what was decided."""
        if self._stopped or not await self._database.read(trials.queued_count):
            return
        started = await self._database.write(self._assign)
        self._notifier.notify(SIGNALS)
        for run in started:
            await self._fleet.launch(run)
            self._notifier.notify(run.experiment_id)

    def _assign(self, connection: Connection) -> list[runs.Run]:
        queue = trials.queued(connection)
        by_id = {trial.id: trial for trial in queue}
        running = runs.unsettled(connection)
        owners = {
            key: experiments.get(connection, experiment_id=key)
            for key in {trial.experiment_id for trial in queue} | {run.experiment_id for run in running}
        }
        plan = scheduling.plan(
            [_request(trial, owners[trial.experiment_id]) for trial in queue],
            [_holder(run, owners[run.experiment_id]) for run in running],
            free=self._free(running),
            total=self._fleet.slot_count,
        )
        for trial_id, explanation in plan.explanations.items():
            if by_id[trial_id].explanation != explanation:
                trials.update(connection, by_id[trial_id], explanation=explanation)
        for allocation in plan.preemptions:
            trial = trials.get(connection, trial_id=runs.get(connection, allocation).trial_id)
            signals.preempt(connection, trial, reason=Reason.SCHEDULER, moment=self._moment())
        return [
            self._start(connection, by_id[placement.trial_id], placement.slot_ids)
            for placement in plan.placements
        ]

    def _moment(self) -> Moment:
        return Moment(now=self._clock.time(), preemption_timeout=self._preemption_timeout)

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
            placements=self._fleet.containers(slots),
        )
        trials.update(
            connection, trial, run=number, state=TrialState.STARTING.value, explanation="", status=""
        )
        _log.info("trial starts", trial=trial.number, run=number, slots=list(slots))
        return runs.get(connection, allocation)


def _request(trial: trials.Trial, experiment: Experiment) -> Request:
    return Request(
        trial_id=trial.id,
        experiment_id=trial.experiment_id,
        slots=experiment.slots_per_trial,
        max_slots=experiment.max_slots,
        priority=experiment.priority,
        weight=experiment.weight,
    )


def _holder(run: runs.Run, experiment: Experiment) -> Holder:
    return Holder(
        allocation_id=run.allocation_id,
        experiment_id=run.experiment_id,
        slots=len(run.slot_ids),
        priority=experiment.priority,
        started_at=run.started_at,
        leaving=run.preempt or run.kill,
    )
