"""Structured logs: one JSON line an event, on stderr, with the trace of the call it belongs to."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog
from structlog.typing import EventDict

from resolute_serving.context import current_trace


def configure_logs(*, level: str = "INFO", service: str) -> None:
    """Sends every log of this process to stderr as JSON.

    Args:
        level: Least severity that is written.
        service: Named in every line.
    """

    def add_call(_: Any, __: str, event: EventDict) -> EventDict:
        event.setdefault("service", service)
        if trace := current_trace.get():
            event["trace"] = trace
        return event

    number = (
        logging.getLevelNamesMapping()[level.upper()]
        if hasattr(logging, "getLevelNamesMapping")
        else level.upper()
    )
    logging.basicConfig(
        level=number, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s", force=True
    )
    # These say nothing of the platform at DEBUG, thousands of times.
    for noisy in ("grpc", "asyncio", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            add_call,
            structlog.processors.JSONRenderer(sort_keys=True),
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
