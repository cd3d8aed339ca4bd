"""Tracing spans of a run's phases in this service, if the environment names an endpoint."""

from __future__ import annotations

from collections.abc import Mapping

from resolute.contracts.tracing import open_spans, run_span_id
from resolute_experiments.states import RunOutcome
from resolute_experiments.store.runs import Run

_SERVICE = "resolute-experiments"
_FAILED = {RunOutcome.FAILED, RunOutcome.LOST, RunOutcome.INVALID_HP}


class RunSpans:
    """Sends the spans.

    Args:
        environ: The environment of this process.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._spans = open_spans(_SERVICE, environ)

    @property
    def wanted(self) -> bool:
        """Whether spans are sent."""
        return self._spans is not None

    def placed(self, run: Run, *, queued_at: float) -> None:
        """Tells that a run was given slots, for which its trial waited."""
        self._add("queue", run, start=queued_at, end=run.started_at)

    def launched(self, run: Run, *, at: float) -> None:
        """Tells that the containers of a run were started."""
        self._add("place", run, start=run.started_at, end=at)

    def settled(self, run: Run) -> None:
        """Tells that a run has ended: the span above all others of its trace."""
        if self._spans is not None and run.ended_at is not None:
            self._spans.add(
                f"run {run.run}",
                trace_id=run.trace_id,
                start=run.started_at,
                end=run.ended_at,
                span_id=run_span_id(run.trace_id),
                failed=run.outcome in _FAILED,
                attributes={**_facts(run), "resolute.outcome": run.outcome.value.lower()},
            )

    def close(self) -> None:
        """Sends what is left, for a bounded time."""
        if self._spans is not None:
            self._spans.close()

    def _add(self, name: str, run: Run, *, start: float, end: float) -> None:
        if self._spans is not None:
            self._spans.add(
                name,
                trace_id=run.trace_id,
                start=start,
                end=end,
                parent=run_span_id(run.trace_id),
                attributes=_facts(run),
            )


def _facts(run: Run) -> dict[str, str | int]:
    return {
        "resolute.experiment_id": run.experiment_id,
        "resolute.trial_id": run.trial_id,
        "resolute.run": run.run,
        "resolute.allocation_id": run.allocation_id,
    }
