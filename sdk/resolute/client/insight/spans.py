"""Sends the phases of a run as OpenTelemetry spans, by OTLP."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from resolute.client.insight.timeline import Phase, Timeline
from resolute.contracts.tracing import run_span_id
from resolute.errors import UnavailableError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter


def send(timeline: Timeline, exporter: SpanExporter, *, cluster_id: str) -> str:
    """Sends a span for the run, and one below it for each phase.

    They are of the trace in which services and supervisors send theirs, and their identifiers follow from it,
    so that a run that is sent again replaces what was sent of it.

    Args:
        timeline: The run.
        exporter: Takes the spans.
        cluster_id: UUID of the cluster.

    Returns:
        The identifier of the trace: 32 hex digits.

    Raises:
        UnavailableError: The endpoint did not take them.
    """
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExportResult
    from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

    trace_id = int(timeline.trace_id, 16)
    resource = Resource.create({"service.name": "resolute", "resolute.cluster_id": cluster_id})
    flags = TraceFlags(TraceFlags.SAMPLED)

    def context(number: int) -> SpanContext:
        name = run_span_id(f"{timeline.trace_id} {number}" if number else timeline.trace_id)
        return SpanContext(trace_id, name, is_remote=False, trace_flags=flags)

    now = datetime.now(timezone.utc)
    root = context(0)

    def span(number: int, phase: Phase, parent: SpanContext | None) -> ReadableSpan:
        return ReadableSpan(
            name=phase.name,
            context=context(number),
            parent=parent,
            resource=resource,
            attributes={
                "resolute.experiment": timeline.experiment,
                "resolute.trial": timeline.trial,
                "resolute.run": timeline.run,
            }
            | ({"resolute.detail": phase.detail} if phase.detail else {}),
            kind=SpanKind.INTERNAL,
            start_time=_nanoseconds(phase.start),
            end_time=_nanoseconds(phase.end or now),
        )

    last = max(phase.end or now for phase in timeline.phases)
    whole = Phase(name=f"run {timeline.trial}.{timeline.run}", start=timeline.start, end=last)
    spans = [span(0, whole, None)]
    spans += [span(number, phase, root) for number, phase in enumerate(timeline.phases, start=1)]
    try:
        if exporter.export(spans) is not SpanExportResult.SUCCESS:
            raise UnavailableError(
                "the OTLP endpoint did not take the spans; check OTEL_EXPORTER_OTLP_ENDPOINT and its log"
            )
    finally:
        exporter.shutdown()
    return timeline.trace_id


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1000
