"""All items of a paged list, fetched page by page as they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

PAGE_SIZE = 400
"""Items asked for at a time: even of the longest lines of a log, a page stays below gRPC's 4 MiB."""


def all_items(
    call: Callable[[Any], Any], request: Any, field: str, *, limit: int | None = None
) -> Iterator[Any]:
    """Yields the items of every page.

    Args:
        call: The stub's method.
        request: A request with ``page_size`` and ``page_token``; both are overwritten.
        field: Name of the response's repeated field.
        limit: Most items wanted; None for all.
    """
    left = limit
    request.page_token = ""
    while left is None or left > 0:
        request.page_size = PAGE_SIZE if left is None else min(PAGE_SIZE, left)
        response = call(request)
        items = getattr(response, field)
        yield from items
        if left is not None:
            left -= len(items)
        request.page_token = response.next_page_token
        if not request.page_token:
            return
