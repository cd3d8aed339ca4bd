"""All items of a paged list, fetched page by page as they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

PAGE_SIZE = 400
"""Items asked for at a time."""
MAX_PAGE_SIZE = 1000
"""Most items that a service gives at a time; for lists whose pages end early when they grow too large."""


def all_items(
    call: Callable[[Any], Any],
    request: Any,
    field: str,
    *,
    limit: int | None = None,
    page_size: int = PAGE_SIZE,
) -> Iterator[Any]:
    """Yields the items of every page.

    Args:
        call: The stub's method.
        request: A request with ``page_size`` and ``page_token``; both are overwritten.
        field: Name of the response's repeated field.
        limit: Most items wanted; None for all.
        page_size: Items asked for at a time.
    """
    left = limit
    request.page_token = ""
    while left is None or left > 0:
        request.page_size = page_size if left is None else min(page_size, left)
        response = call(request)
        items = getattr(response, field)
        yield from items
        if left is not None:
            left -= len(items)
        request.page_token = response.next_page_token
        if not request.page_token:
            return
