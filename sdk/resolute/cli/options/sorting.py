"""The options for the order of a list: ``--sort-by`` and ``--order-by``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

import click

from resolute.cli.display.tables.table_choice import without_table_sort


def sort_options(
    fields: Mapping[str, Callable[[Any], Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the options; the command gets ``sort``, which puts the items of a list into the wanted order.

    Args:
        fields: By the names that `--sort-by` takes, how to read the field of an item.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        without_table_sort(command)

        @click.option("--sort-by", type=click.Choice(sorted(fields)), help="Sort by this field.")
        @click.option(
            "--order-by", type=click.Choice(["asc", "desc"]), help="Smallest or greatest first [asc]."
        )
        @wraps(command)
        def wrapped(*args: Any, sort_by: str | None, order_by: str | None, **options: Any) -> Any:
            def sort(items: Iterable[Any]) -> list[Any]:
                rows = list(items)
                if sort_by is not None:
                    read = fields[sort_by]
                    # What has no value comes first, as the smallest.
                    rows.sort(key=lambda item: (read(item) is not None, read(item)))
                return rows[::-1] if order_by == "desc" else rows

            return command(*args, sort=sort, **options)

        return wrapped

    return decorate
