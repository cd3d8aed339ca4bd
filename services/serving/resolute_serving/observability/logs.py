"""Structured logs: one JSON line for each event, on stderr or in a file, with the trace of its call."""

from __future__ import annotations

import logging
import logging.handlers
import os
import sys
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import structlog
from structlog.typing import EventDict

from resolute.errors import InvalidArgumentError
from resolute_serving.context import current_trace
from resolute_serving.observability.recent_lines import RECENT_LINES

LOG_FILE_BYTES = 10 * 1024 * 1024
_KEPT_FILES = 4
_VARIABLE = "RESOLUTE_LOG_FILE_BYTES"


def log_file_bytes(variables: Mapping[str, str]) -> int:
    """Reads from RESOLUTE_LOG_FILE_BYTES how long a log file may get (10 MiB).

    Raises:
        InvalidArgumentError: The variable holds no such number.
    """
    text = variables.get(_VARIABLE) or str(LOG_FILE_BYTES)
    if not text.isdecimal() or int(text) < 1024:
        raise InvalidArgumentError(f"{_VARIABLE} is {text!r}; it must be a whole number of 1024 or more")
    return int(text)


def configure_logs(
    *, level: str = "INFO", service: str, file: Path | None = None, file_bytes: int = LOG_FILE_BYTES
) -> None:
    """Sends every log of this process to stderr, or into a file, as JSON.

    Args:
        level: Least severity that is written.
        service: Named in every line.
        file: The file; readable by its owner alone.
        file_bytes: When the file is as long as this, it is renamed to end in ``.1``, and a new one is begun.
            Four old files are kept.
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
    handler = logging.StreamHandler(sys.stderr) if file is None else _PrivateFiles(file, file_bytes)
    logging.basicConfig(
        level=number,
        handlers=[handler, RECENT_LINES],
        format="%(levelname)s %(name)s %(message)s",
        force=True,
    )
    logging.captureWarnings(capture=file is not None)
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


class _PrivateFiles(logging.handlers.RotatingFileHandler):
    """Log files of bounded size that only their owner can read."""

    def __init__(self, file: Path, max_bytes: int) -> None:
        super().__init__(file, maxBytes=max_bytes, backupCount=_KEPT_FILES, encoding="utf-8")

    def _open(self) -> TextIOWrapper:
        stream = super()._open()
        os.fchmod(stream.fileno(), 0o600)
        return stream
