"""Judges the reports of running trials."""

from __future__ import annotations

from functools import partial

import structlog

from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute.errors import ResoluteError
from resolute_experiments.clients import Clients
from resolute_experiments.context import ServiceContext
from resolute_experiments.guard import guarded_trials
from resolute_experiments.guard.action import BadReport, goes_back, settle
from resolute_experiments.guard.guarded_trials import GuardedTrial
from resolute_experiments.guard.judgement import Judge, values_needed
from resolute_experiments.guard.reports import good_values, reports_of_run
from resolute_experiments.topics import REPORTED_STEPS, SIGNAL_CHANGES, watched
from resolute_serving.database.remembered import Remembered
from resolute_serving.repetition import repeat

_LOOK_SECONDS = 5.0
"""Between two looks without a copied report; another replica may copy some."""
_MOST_JUDGES = 1000
_log = structlog.get_logger("guard")


class GuardWatch:
    """Judges the reports of trials whose experiments have a guard.

    Args:
        core: The context that all parts of this service share.
        clients: The other services.
    """

    def __init__(self, core: ServiceContext, *, clients: Clients) -> None:
        self._core = core
        self._clients = clients
        self._reported = Remembered(core.database, guarded_trials.reported)
        # By trial: the run and the steps that were judged last, so that values before need not be read again.
        self._judges: dict[str, tuple[tuple[int, int], Judge]] = {}

    async def run(self) -> None:
        """Looks until the service stops."""

        async def look() -> float:
            for guarded in await self._reported.get():
                await self._judge(guarded)
            return _LOOK_SECONDS

        failures = LoggedBackoff(_log, "the reports of guarded trials cannot be judged")
        await repeat(look, notifier=self._core.notifier, topics=[REPORTED_STEPS], failures=failures)

    async def look_at(self, trial_id: str) -> None:
        """Judges what a trial has reported until now; its run has ended, and waits for no metrics service."""
        guarded = await self._core.database.read(lambda c: guarded_trials.of_trial(c, trial_id))
        if guarded is None:
            return
        try:
            await self._judge(guarded)
        except ResoluteError as failure:
            _log.warning(
                "the last reports of a run are not judged",
                allocation=guarded.allocation_id,
                reason=str(failure),
            )

    async def _judge(self, guarded: GuardedTrial) -> None:
        judge = await self._judge_of(guarded)
        steps, bad = guarded.guarded_steps, None
        async for report in reports_of_run(
            guarded.trial_id,
            guarded.run,
            guarded.guard["metric"],
            after_steps=guarded.guarded_steps,
            clients=self._clients,
        ):
            fault = "" if report.value is None else judge.fault(report.value)
            # The first one, also where good ones follow before this look is over.
            bad = bad or (BadReport(report.steps, fault) if fault else None)
            if bad and goes_back(guarded):
                break
            steps = report.steps
        if steps == guarded.guarded_steps and bad is None:
            return
        timing = self._core.timing()
        work = partial(settle, guarded=guarded, bad=bad, steps=steps, timing=timing)
        happened = await self._core.database.write(work)
        if len(self._judges) >= _MOST_JUDGES:
            self._judges.clear()
        self._judges[guarded.trial_id] = ((guarded.run, steps), judge)
        topics = (SIGNAL_CHANGES, guarded.experiment_id) if happened else ()
        self._core.notifier.notify(watched(guarded.experiment_id), *topics)

    async def _judge_of(self, guarded: GuardedTrial) -> Judge:
        """A judge that knows the values before the next ones of a trial."""
        place, judge = self._judges.pop(guarded.trial_id, (None, Judge(guarded.guard)))
        if place == (guarded.run, guarded.guarded_steps):
            return judge
        ended = await self._core.database.read(
            lambda c: guarded_trials.good_steps_of_runs(c, guarded.trial_id)
        )
        judge = Judge(guarded.guard)
        for value in await good_values(
            guarded.trial_id,
            guarded.guard["metric"],
            until_steps=guarded.guarded_steps,
            most=values_needed(guarded.guard),
            good_steps=ended,
            clients=self._clients,
        ):
            judge.fault(value)
        return judge
