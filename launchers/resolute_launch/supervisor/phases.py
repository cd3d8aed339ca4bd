"""Sends the phases of a run as spans, if the environment names an OpenTelemetry endpoint."""

from __future__ import annotations

from collections.abc import Mapping

from resolute.contracts.clock import Clock
from resolute.contracts.tracing import open_spans, run_span_id
from resolute_launch.container.task import Task

_SERVICE = "resolute-supervisor"


class Phases:
    """The consecutive phases of one run.

    Args:
        task: The run's task.
        environ: The environment of the supervisor.
        clock: Clock for the times of phases.
    """

    def __init__(self, task: Task, *, environ: Mapping[str, str], clock: Clock) -> None:
        self._clock = clock
        self._spans = open_spans(_SERVICE, environ)
        self._trace_id = task.spec.trace_id
        self._attributes: dict[str, str | int] = {
            "resolute.experiment_id": task.spec.experiment_id,
            "resolute.trial_id": task.spec.trial_id,
            "resolute.run": task.spec.run,
            "resolute.container": task.order.container_rank,
        }
        self._name = ""
        self._began = 0.0

    def begin(self, name: str) -> None:
        """Begins a phase, and ends the one before."""
        self._end()
        self._name, self._began = name, self._clock.time()

    def add(self, name: str, *, until: float) -> None:
        """Adds a part of the current phase, from its begin to a Unix time; zero for one that was not."""
        if until:
            self._send(name, until)

    def close(self) -> None:
        """Ends the last phase, and sends what is left for a bounded time."""
        self._end()
        if self._spans is not None:
            self._spans.close()

    def _end(self) -> None:
        if self._name:
            self._send(self._name, self._clock.time())
        self._name = ""

    def _send(self, name: str, end: float) -> None:
        if self._spans is not None:
            self._spans.add(
                name,
                trace_id=self._trace_id,
                start=self._began,
                end=end,
                parent=run_span_id(self._trace_id),
                attributes=self._attributes,
            )
