"""Copies data of the metrics service to the rows of trials: best and last validations, and last steps.

All experiments share one cursor of validations: one call fetches all changes since then. So trials of old
homes, unmanaged trials and late reports need no special handling. Steps change with every batch of reports,
and their changes have no order. So they are fetched for running trials, and once after each run.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence
from functools import partial

import structlog
from sqlalchemy.engine import Connection

from resolute.api.metrics.v1 import metrics_service_pb2
from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute.contracts.clock import Clock
from resolute_experiments.alerts.watching import raise_of_validations
from resolute_experiments.clients import Clients
from resolute_experiments.store.copies import reported_steps, validations
from resolute_experiments.store.copies.reported_steps import DueTrial, ReportedSteps
from resolute_experiments.store.copies.validations import TrialValidations
from resolute_experiments.topics import REPORTED_STEPS, Topic, watched
from resolute_serving.database.engine import Database
from resolute_serving.database.remembered import Remembered
from resolute_serving.notifier import Notifier
from resolute_serving.repetition import repeat

_PAUSE_SECONDS = 2.0
_QUIET_SECONDS = 5.0
"""Between two looks while no trial of the cluster runs: what comes is late, or of trials elsewhere."""
_PAGE = 1000
_DEADLINE_SECONDS = 30.0
_RATE_SECONDS = 30.0
"""Over about so long the rate of steps is averaged: a validation or a checkpoint is no change of it."""
_log = structlog.get_logger("validations")


class MetricsCopy:
    """Copies the changes of validations and steps from the metrics service.

    Args:
        database: This service's database.
        clients: The other services.
        notifier: Notified of changes.
        clock: Clock for the times of alerts.
    """

    def __init__(
        self, database: Database, *, clients: Clients, notifier: Notifier[Topic], clock: Clock
    ) -> None:
        self._database = database
        self._clock = clock
        self._clients = clients
        self._notifier = notifier
        self._lock = asyncio.Lock()
        self._cursor = Remembered(database, validations.cursor)
        self._due = Remembered(database, partial(reported_steps.due, after=0, limit=_PAGE))

    async def run(self) -> None:
        """Copies changes until the service stops."""

        async def copy() -> float:
            await self.refresh()
            return _PAUSE_SECONDS if await self._due.get() else _QUIET_SECONDS

        failures = LoggedBackoff(_log, "validations and steps cannot be copied")
        await repeat(copy, notifier=self._notifier, failures=failures)

    async def refresh(self) -> None:
        """Copies every change that the metrics service has now.

        Raises:
            ResoluteError: The metrics service did not answer; to be repeated.
        """
        async with self._lock:
            await self._refresh_validations()
            await self._refresh_steps()

    async def _refresh_validations(self) -> None:
        cursor = await self._cursor.get()
        while True:
            response = await self._changes(cursor)
            if response.latest_revision < cursor:
                # Its data was replaced, by that of an older backup for instance: the copy is made again.
                cursor = 0
            elif response.trials:
                cursor = response.trials[-1].revision
                await self._store(response, cursor)
            else:
                return

    async def _refresh_steps(self) -> None:
        due = await self._due.get()
        while due:
            request = metrics_service_pb2.ListLastStepsRequest(trial_ids=[trial.trial_id for trial in due])
            response = await self._clients.metrics.ListLastSteps(request, timeout=_DEADLINE_SECONDS)
            changes = reported_changes(due, response.trials)
            if changes:
                await self._database.write(partial(reported_steps.store, changes=changes))
                self._notifier.notify(REPORTED_STEPS, *{watched(trial.experiment_id) for trial, _ in changes})
            if len(due) < _PAGE:
                return
            following = partial(reported_steps.due, after=due[-1].number, limit=_PAGE)
            due = await self._database.read(following)

    async def _changes(self, after: int) -> metrics_service_pb2.ListTrialValidationsResponse:
        request = metrics_service_pb2.ListTrialValidationsRequest(after_revision=after, page_size=_PAGE)
        return await self._clients.metrics.ListTrialValidations(request, timeout=_DEADLINE_SECONDS)

    async def _store(self, response: metrics_service_pb2.ListTrialValidationsResponse, revision: int) -> None:
        changes = [
            TrialValidations(
                trial_id=trial.trial_id,
                experiment_id=trial.experiment_id,
                best_value=trial.best_value if trial.HasField("best_value") else None,
                best_steps=trial.best_steps if trial.HasField("best_steps") else None,
                last_value=trial.last_value if trial.HasField("last_value") else None,
                last_steps=trial.last_steps,
            )
            for trial in response.trials
        ]
        now = self._clock.time()

        def work(connection: Connection) -> None:
            validations.store(connection, changes=changes, revision=revision)
            raise_of_validations(connection, changes, now=now)

        await self._database.write(work)
        self._notifier.notify(*{watched(change.experiment_id) for change in changes})


def reported_changes(
    due: Sequence[DueTrial], answers: Iterable[metrics_service_pb2.ListLastStepsResponse.LastSteps]
) -> list[tuple[DueTrial, ReportedSteps | None]]:
    """Returns the trials to update: those with new steps, and those that run no more, which were checked."""
    found = {reported.trial_id: reported for reported in answers}
    changes: list[tuple[DueTrial, ReportedSteps | None]] = []
    for trial in due:
        answer = found.get(trial.trial_id)
        reported = None if answer is None else _reported(trial.reported, answer)
        if reported != trial.reported or not trial.runs:
            changes.append((trial, reported))
    return changes


def _reported(
    known: ReportedSteps | None, answer: metrics_service_pb2.ListLastStepsResponse.LastSteps
) -> ReportedSteps:
    rate = None
    if known is not None and known.run == answer.run:
        rate = known.steps_per_second
        seconds, steps = answer.time - known.time, answer.steps - known.steps
        if seconds > 0 and steps > 0:
            weight = 1.0 if rate is None else -math.expm1(-seconds / _RATE_SECONDS)
            rate = (rate or 0.0) * (1 - weight) + steps / seconds * weight
        elif not steps:
            # A validation at the same steps: its time counts once the next step has been reported.
            return known
    return ReportedSteps(run=answer.run, steps=answer.steps, time=answer.time, steps_per_second=rate)
