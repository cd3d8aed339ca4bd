"""The warning about a search whose trials never report its metric, and the pause of such a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog
from sqlalchemy.engine import Connection

from resolute.api.metrics.v1 import metrics_service_pb2
from resolute.api.searcher.v1 import searcher_service_pb2
from resolute.contracts.clock import Clock
from resolute.contracts.documents.rejections import suggestion
from resolute.errors import ResoluteError
from resolute_experiments.clients import Clients
from resolute_experiments.lifecycle import commands
from resolute_experiments.specs.search import works_by_operations
from resolute_experiments.states import ExperimentState
from resolute_experiments.store import experiments, trials
from resolute_experiments.store.experiments import Experiment, ExperimentKind
from resolute_experiments.timing import Timing
from resolute_experiments.topics import SCHEDULER_WAKEUP, SIGNAL_CHANGES, Topic, watched
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier

_EVERY_SECONDS = 15.0
_DEADLINE_SECONDS = 30.0
_GROUP = "validation"
_PAGE = 1000
_SHOWN = 10
PAUSED = "; paused for that: submit it again with the right metric, or activate it to let it train on"
"""Ends the warning of a search that was paused once for it."""
_log = structlog.get_logger("validations")


class MetricWarning:
    """Updates the warning of one experiment.

    Args:
        database: This service's database.
        clients: The other services.
        notifier: Notified of changes.
        clock: Clock for the interval of calls to the metrics service while trials run.
        timing: Time of a pause.
    """

    def __init__(
        self,
        database: Database,
        *,
        clients: Clients,
        notifier: Notifier[Topic],
        clock: Clock,
        timing: Callable[[], Timing],
    ) -> None:
        self._database = database
        self._clients = clients
        self._notifier = notifier
        self._clock = clock
        self._timing = timing
        self._settled = False
        self._asked_at = float("-inf")

    async def refresh(self, experiment: Experiment, *, ending: bool = False) -> None:
        """Sets or removes the warning. If the metrics service does not answer, nothing changes.

        A search that goes by the metric is paused, once, if the same holds when it is looked at again: a
        script may report the metric in a call of its own.

        Args:
            experiment: The experiment.
            ending: Whether all trials have ended: then having no validation at all is worth a warning too.
        """
        searches = experiment.kind is ExperimentKind.SEARCH
        metric = experiment.config["searcher"].get("metric") if searches else None
        now = self._clock.monotonic()
        if not metric or self._settled or (not ending and now - self._asked_at < _EVERY_SECONDS):
            return
        self._asked_at = now
        try:
            warning = await self._warning(experiment, metric, ending=ending)
        except ResoluteError as failure:
            _log.warning("metrics are checked later", experiment=experiment.number, reason=str(failure))
            return
        if warning and not ending and _goes_by_metric(experiment):
            if experiment.warning == warning and experiment.state is ExperimentState.ACTIVE:
                await self._pause(experiment, warning + PAUSED)
                return
            if experiment.warning.endswith(PAUSED):
                warning += PAUSED
        if warning != experiment.warning:
            await self._database.write(lambda c: experiments.update(c, experiment.id, warning=warning))
            self._notifier.notify(watched(experiment.id))

    async def _pause(self, experiment: Experiment, warning: str) -> None:
        def work(connection: Connection) -> None:
            experiments.update(connection, experiment.id, warning=warning)
            current = experiments.get(connection, experiment_id=experiment.id)
            # Meanwhile it may have begun to end.
            if current.state is ExperimentState.ACTIVE:
                commands.pause(connection, current, self._timing())

        await self._database.write(work)
        _log.warning("a search was paused: its metric does not come", experiment=experiment.number)
        self._notifier.notify(experiment.id, watched(experiment.id), SCHEDULER_WAKEUP, SIGNAL_CHANGES)

    async def _warning(self, experiment: Experiment, metric: str, *, ending: bool) -> str:
        if await self._database.read(lambda c: trials.any_validated(c, experiment.id)):
            self._settled = True
            return ""
        reported = await self._reported(experiment)
        own = reported if reported.complete else await self._reported(experiment, metric)
        if metric in own.numbers:
            return ""
        missing = f"no trial has reported searcher.metric {metric!r}"
        if metric in own.others:
            return f"{missing} as a number; `resolute trial describe ID --metrics-summary` shows what it was"
        if names := sorted({*reported.numbers, *reported.others}):
            shown = ", ".join([*names[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])])
            hint = suggestion(metric, names)
            return f"{missing}; validations have: {shown}" + (f"; {hint}" if hint else "")
        if (
            ending
            and experiment.state is ExperimentState.STOPPING_COMPLETED
            and await self._blind(experiment)
        ):
            call = f"context.train.report_validation_metrics(steps, {{{metric!r}: value}})"
            return (
                f"{missing}, nor any other validation metric; a script reports it by {call}, "
                "where context is what resolute.core.init() gives"
            )
        return ""

    async def _blind(self, experiment: Experiment) -> bool:
        """Whether a search without validations never learned what its trials reached."""
        # A single script may well validate nothing, and the program of a custom search knows what it goes by.
        if experiment.config["searcher"]["name"] in {"single", "custom"}:
            return False
        return not works_by_operations(experiment.config) or not await self._completed_any(experiment)

    async def _completed_any(self, experiment: Experiment) -> bool:
        """Whether a trial has completed an operation, which it does with the value of the metric."""
        request = searcher_service_pb2.ListEventsRequest(
            search_id=experiment.id, kinds=["validation_completed"], page_size=1
        )
        while True:
            page = await self._clients.searcher.ListEvents(request, timeout=_DEADLINE_SECONDS)
            if page.entries or not page.next_page_token:
                return bool(page.entries)
            request.page_token = page.next_page_token

    async def _reported(self, experiment: Experiment, *metrics: str) -> _Reported:
        """The validation metrics that were reported, of these if any are named."""
        request = metrics_service_pb2.ListSummariesRequest(
            experiment_id=experiment.id, groups=[_GROUP], names=metrics, page_size=_PAGE
        )
        response = await self._clients.metrics.ListSummaries(request, timeout=_DEADLINE_SECONDS)
        numbers = {summary.name for summary in response.summaries if summary.count or summary.nonfinite_count}
        others = {summary.name for summary in response.summaries} - numbers
        return _Reported(frozenset(numbers), frozenset(others), complete=not response.next_page_token)


@dataclass(frozen=True)
class _Reported:
    """The names of the reported metrics."""

    numbers: frozenset[str]
    others: frozenset[str]
    """Those that were only text, lists or the like."""
    complete: bool
    """Whether these are all."""


def _goes_by_metric(experiment: Experiment) -> bool:
    # Operations are completed with the value of the metric: a search by operations needs no report of it.
    return experiment.config["searcher"]["name"] != "single" and not works_by_operations(experiment.config)
