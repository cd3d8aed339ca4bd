"""Sends the runs of an experiment as OpenTelemetry spans, each when it has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from resolute.client.insight.differences import RunKey
from resolute.client.insight.spans import send
from resolute.client.insight.timeline import read_timeline
from resolute.client.schema.records import TrialRecord
from resolute.client.services import Services
from resolute.errors import UnavailableError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter


@dataclass(frozen=True, kw_only=True)
class SentRun:
    """A run that was sent, or the failure to send it."""

    trial: int
    run: int
    trace_id: str = ""
    """Empty if the endpoint did not take it."""
    failure: str = ""


@dataclass
class SpanExport:
    """Sends the runs of one experiment.

    Args:
        services: The cluster.
        experiment: Number or UUID of the experiment.
        open_exporter: Opens the exporter for the spans of one run.
    """

    services: Services
    experiment: int | str
    open_exporter: Callable[[], SpanExporter]
    _sent: dict[str, set[int]] = field(default_factory=dict)
    """Numbers of the runs that were sent, by the UUID of their trial."""

    def follow(self) -> Iterator[SentRun]:
        """Sends what has ended, and then each run when it ends, until the experiment has ended.

        Yields:
            Each run after it was sent. One that the endpoint did not take is sent again at the end.

        Raises:
            NotFoundError: There is no such experiment.
            FailedPreconditionError: OpenTelemetry is not installed.
        """
        cluster_id = self.services.cluster.get().cluster_id
        for change in self.services.experiments.watch(self.experiment, include_trials=True):
            for trial in change.trials:
                if self._may_have_ended_runs(trial):
                    yield from self._send_ended(self.services.trials.get(trial.uuid), cluster_id)
        for trial in self.services.trials.list(self.experiment, with_runs=True):
            yield from self._send_ended(trial, cluster_id)

    def _may_have_ended_runs(self, trial: TrialRecord) -> bool:
        """Whether there may be more to send of a trial that changed; asking for its runs costs a call."""
        ended = trial.run - (1 if trial.state.holds_slots else 0)
        return ended > len(self._sent.get(trial.uuid, ()))

    def _send_ended(self, trial: TrialRecord, cluster_id: str) -> Iterator[SentRun]:
        sent = self._sent.setdefault(trial.uuid, set())
        for run in trial.runs:
            if run.end_time is None or run.run in sent:
                continue
            timeline = read_timeline(self.services, RunKey(trial.uuid, run.run))
            try:
                trace_id = send(timeline, self.open_exporter(), cluster_id=cluster_id)
            except UnavailableError as failure:
                yield SentRun(trial=trial.id, run=run.run, failure=str(failure))
            else:
                sent.add(run.run)
                yield SentRun(trial=trial.id, run=run.run, trace_id=trace_id)
