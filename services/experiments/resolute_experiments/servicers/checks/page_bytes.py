"""Pages of lists that fit into one response, whatever the size of their items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy.engine import Connection

MAX_BYTES = 3 * 1024 * 1024
"""Most bytes of a page with more than one item: clients take 4 MiB."""
Response = TypeVar("Response", bound=Any)


def shortened_page(
    connection: Connection, *, work: Callable[[Connection], Response], request: Any
) -> Response:
    """Reads a page, and a shorter one in its place while it is too large.

    Args:
        connection: Where from.
        work: Reads the page that the request asks for.
        request: Its ``page_size`` is lowered; its token does not depend on that.
    """
    while True:
        response = work(connection)
        # A list without items is no field; a count of what matches may be one.
        count = next((len(value) for field, value in response.ListFields() if field.is_repeated), 0)
        if count <= 1 or response.ByteSize() <= MAX_BYTES:
            return response
        request.page_size = count // 2
