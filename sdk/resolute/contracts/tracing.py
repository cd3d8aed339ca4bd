"""Spans of OpenTelemetry that services and supervisors send by OTLP, where the environment names an endpoint.

A run has a trace of its own, whose identifier its calls carry through every service. The span of the run is
the parent of all others. Its identifier is derived from that of the trace, so each process can compute it.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

from resolute.contracts.distribution import install_command
from resolute.errors import FailedPreconditionError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""The variables of OpenTelemetry that name an endpoint."""
_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_EXPORT_SECONDS = 5.0
_log = logging.getLogger("resolute.tracing")


def otlp_exporter() -> SpanExporter:
    """Returns what sends spans to the endpoint that the environment names.

    Raises:
        FailedPreconditionError: OpenTelemetry is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as failure:
        raise FailedPreconditionError(
            f"spans are sent by OpenTelemetry, which is missing; `{install_command('trace')}` installs it"
        ) from failure
    return OTLPSpanExporter(timeout=_EXPORT_SECONDS)


def run_span_id(trace_id: str) -> int:
    """Returns the identifier of the span of a run, by that of its trace."""
    return int.from_bytes(hashlib.sha256(trace_id.encode()).digest()[:8], "big")


class Spans:
    """Sends the spans of one component, in the background and in batches. It drops spans that it cannot send.

    Args:
        service: Name of the component, such as ``resolute-searcher``.
        exporter: Takes the spans.
    """

    def __init__(self, service: str, exporter: SpanExporter) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        self._resource = Resource.create({"service.name": service})
        self._processor = BatchSpanProcessor(exporter)

    def add(
        self,
        name: str,
        *,
        trace_id: str,
        start: float,
        end: float,
        parent: int | None = None,
        span_id: int | None = None,
        failed: bool = False,
        attributes: Mapping[str, str | int] | None = None,
    ) -> None:
        """Adds a span that has ended; it takes microseconds.

        Args:
            name: Its name.
            trace_id: The trace: 32 hex digits. With another one, the span is left out.
            start: Unix time.
            end: Unix time.
            parent: Identifier of the span above it; None for none.
            span_id: Its own identifier; None for a random one.
            failed: Whether what it stands for failed.
            attributes: What else it says.
        """
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

        if _TRACE_ID.fullmatch(trace_id) is None:
            return

        def context(number: int) -> SpanContext:
            flags = TraceFlags(TraceFlags.SAMPLED)
            return SpanContext(int(trace_id, 16), number, is_remote=False, trace_flags=flags)

        self._processor.on_end(
            ReadableSpan(
                name=name,
                context=context(secrets.randbits(64) if span_id is None else span_id),
                parent=None if parent is None else context(parent),
                resource=self._resource,
                attributes=attributes,
                status=Status(StatusCode.ERROR if failed else StatusCode.UNSET),
                start_time=int(start * 1e6) * 1000,
                end_time=int(max(start, end) * 1e6) * 1000,
            )
        )

    def close(self) -> None:
        """Sends what is left, for a bounded time."""
        self._processor.shutdown()  # type: ignore[no-untyped-call]


def open_spans(service: str, environ: Mapping[str, str]) -> Spans | None:
    """Opens the spans of a part; None where no endpoint is named, or OpenTelemetry is missing."""
    if not any(environ.get(name) for name in ENDPOINT_VARIABLES):
        return None
    try:
        exporter = otlp_exporter()
    except FailedPreconditionError as missing:
        _log.warning("no spans are sent to the endpoint that the environment names: %s", missing)
        return None
    return Spans(service, exporter)
