"""The results of tools: plain values of bounded size, with control characters in texts made visible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from resolute.cli.display.output import to_plain
from resolute.cli.display.terminal import neutralised

ItemT = TypeVar("ItemT")
LONGEST_TEXT = 8000
"""Characters of one text; log lines and model code can be megabytes."""


def plain(value: Any) -> Any:
    """Turns records into JSON values; control characters become visible and long texts are cut."""
    return _safe(to_plain(value))


def page(name: str, items: Iterable[ItemT], limit: int) -> dict[str, Any]:
    """Returns at most ``limit`` items, and whether there are more.

    Args:
        name: What the items are called in the result.
        items: The items; no more than needed are read.
        limit: Most of them.
    """
    remaining: Iterator[ItemT] = iter(items)
    shown = list(islice(remaining, limit))
    return {name: shown, "more": next(remaining, None) is not None}


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {_text(name): _safe(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_safe(item) for item in value]
    return value


def _text(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]}... ({len(text) - LONGEST_TEXT} more characters)"
    return neutralised(text)
