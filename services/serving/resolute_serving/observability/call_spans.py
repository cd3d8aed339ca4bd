"""OpenTelemetry spans for calls, each in the trace that its caller names."""

from __future__ import annotations

import time

from resolute.contracts.tracing import Spans, run_span_id
from resolute_serving.context import TrialRun, current_principal, current_trace


def send_call(spans: Spans, method: str, code: str, seconds: float) -> None:
    """Sends the span of a call that ends now.

    Args:
        spans: Takes it.
        method: Full name of the method.
        code: Its status.
        seconds: How long it took.
    """
    trace, now = current_trace.get(), time.time()
    service, _, name = method.strip("/").rpartition("/")
    spans.add(
        name,
        trace_id=trace,
        start=now - seconds,
        end=now,
        # Only the calls of a run share a trace: each other call has one of its own.
        parent=run_span_id(trace) if isinstance(current_principal.get(), TrialRun) else None,
        failed=code != "OK",
        attributes={
            "rpc.system": "grpc",
            "rpc.service": service,
            "rpc.method": name,
            "resolute.status": code,
        },
    )
