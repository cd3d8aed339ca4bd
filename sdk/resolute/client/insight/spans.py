"""Sends the phases of a run as OpenTelemetry spans, by OTLP."""

from __future__ import annotations

import hashlib
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from resolute.client.insight.timeline import Phase, Timeline
from resolute.errors import FailedPreconditionError, UnavailableError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""The variables of OpenTelemetry that name an endpoint."""
_EXTRA = (
    "spans are sent by OpenTelemetry, which is missing; `pip install 'resolute-train[trace]'` installs it"
)


def otlp_exporter() -> SpanExporter:
    """Returns what sends spans to the endpoint that the environment names.

    Raises:
        FailedPreconditionError: OpenTelemetry is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as failure:
        raise FailedPreconditionError(_EXTRA) from failure
    return OTLPSpanExporter()


def send(found: Timeline, exporter: SpanExporter, *, cluster_id: str) -> str:
    """Sends a span for the run, and one below it for each phase.

    The identifiers follow from the cluster, the trial and the run, so that a run that is sent again replaces
    what was sent of it.

    Args:
        found: The run.
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

    digest = hashlib.sha256(f"{cluster_id} {found.trial}.{found.run}".encode()).digest()
    trace_id = int.from_bytes(digest[:16], "big")
    resource = Resource.create({"service.name": "resolute", "resolute.cluster_id": cluster_id})
    flags = TraceFlags(TraceFlags.SAMPLED)

    def context(number: int) -> SpanContext:
        name = hashlib.sha256(digest + number.to_bytes(4, "big")).digest()
        return SpanContext(trace_id, int.from_bytes(name[:8], "big"), is_remote=False, trace_flags=flags)

    now = datetime.now(timezone.utc)
    root = context(0)

    def span(number: int, phase: Phase, parent: SpanContext | None) -> ReadableSpan:
        return ReadableSpan(
            name=phase.name,
            context=context(number),
            parent=parent,
            resource=resource,
            attributes={
                "resolute.experiment": found.experiment,
                "resolute.trial": found.trial,
                "resolute.run": found.run,
            }
            | ({"resolute.detail": phase.detail} if phase.detail else {}),
            kind=SpanKind.INTERNAL,
            start_time=_nanoseconds(phase.start),
            end_time=_nanoseconds(phase.end or now),
        )

    last = max(phase.end or now for phase in found.phases)
    whole = Phase(name=f"run {found.trial}.{found.run}", start=found.start, end=last)
    spans = [span(0, whole, None)]
    spans += [span(number, phase, root) for number, phase in enumerate(found.phases, start=1)]
    try:
        if exporter.export(spans) is not SpanExportResult.SUCCESS:
            raise UnavailableError(
                "the OTLP endpoint did not take the spans; check OTEL_EXPORTER_OTLP_ENDPOINT and its log"
            )
    finally:
        exporter.shutdown()
    return f"{trace_id:032x}"


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1000
