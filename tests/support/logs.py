"""How services that run inside of the test process log."""

from __future__ import annotations

import structlog


def plain_logs() -> None:
    """Prints tracebacks without the values of variables.

    What structlog does unless it is told otherwise draws them all: with megabytes among them that keeps an
    event loop for seconds.
    """
    structlog.reset_defaults()
    *others, _ = structlog.get_config()["processors"]
    renderer = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*others, renderer])
