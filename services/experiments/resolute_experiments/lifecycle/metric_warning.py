"""The warning about a search whose trials never report its metric."""

from __future__ import annotations

import structlog

from resolute.api.metrics.v1 import metrics_service_pb2
from resolute.contracts.clock import Clock
from resolute.contracts.documents.rejections import suggestion
from resolute.errors import ResoluteError
from resolute_experiments.clients import Clients
from resolute_experiments.specs.search import works_by_operations
from resolute_experiments.states import ExperimentState
from resolute_experiments.store import experiments, trials
from resolute_experiments.store.experiments import Experiment, ExperimentKind
from resolute_experiments.topics import Topic, watched
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier

_EVERY_SECONDS = 15.0
_DEADLINE_SECONDS = 30.0
_GROUP = "validation"
_PAGE = 1000
_SHOWN = 10
_log = structlog.get_logger("validations")


class MetricWarning:
    """Keeps the warning of one experiment up to date.

    Args:
        database: This service's database.
        clients: The other services.
        notifier: Tells of changes.
        clock: Measures how often the metrics service is asked while trials run.
    """

    def __init__(
        self, database: Database, *, clients: Clients, notifier: Notifier[Topic], clock: Clock
    ) -> None:
        self._database = database
        self._clients = clients
        self._notifier = notifier
        self._clock = clock
        self._settled = False
        self._asked_at = float("-inf")

    async def refresh(self, experiment: Experiment, *, ending: bool = False) -> None:
        """Sets the warning, or takes it back. A metrics service that does not answer changes nothing.

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
        if warning != experiment.warning:
            await self._database.write(lambda c: experiments.update(c, experiment.id, warning=warning))
            self._notifier.notify(watched(experiment.id))

    async def _warning(self, experiment: Experiment, metric: str, *, ending: bool) -> str:
        if await self._database.read(lambda c: trials.any_validated(c, experiment.id)):
            self._settled = True
            return ""
        names, complete = await self._reported(experiment)
        if metric in names or (not complete and (await self._reported(experiment, metric))[0]):
            return ""
        missing = f"no trial has reported searcher.metric {metric!r}"
        if names:
            shown = ", ".join([*names[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])])
            hint = suggestion(metric, names)
            return f"{missing}; validations have: {shown}" + (f"; {hint}" if hint else "")
        # A script that trains by itself may well validate nothing: `resolute run` submits such ones.
        asked = experiment.state is ExperimentState.STOPPING_COMPLETED and _needs_validations(experiment)
        return f"{missing}, nor any other validation metric" if ending and asked else ""

    async def _reported(self, experiment: Experiment, *metrics: str) -> tuple[list[str], bool]:
        """The validation metrics that were reported, of these if any are named, and whether these are all."""
        request = metrics_service_pb2.ListSummariesRequest(
            experiment_id=experiment.id, groups=[_GROUP], names=metrics, page_size=_PAGE
        )
        response = await self._clients.metrics.ListSummaries(request, timeout=_DEADLINE_SECONDS)
        return sorted({summary.name for summary in response.summaries}), not response.next_page_token


def _needs_validations(experiment: Experiment) -> bool:
    # Operations are completed with the value of the metric: a search by operations that has ended knew it.
    return experiment.config["searcher"]["name"] != "single" and not works_by_operations(experiment.config)
