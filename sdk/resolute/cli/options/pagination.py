"""The options that select a part of a long list: ``--limit``, ``--offset`` and ``--pages``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from itertools import islice
from typing import Any, TypeVar

import click

ItemT = TypeVar("ItemT")
_OPTIONS = frozenset({"limit", "offset", "pages"})


@dataclass(frozen=True)
class Page:
    """A part of a list."""

    offset: int
    limit: int | None
    """Most items; None for all."""

    @property
    def end(self) -> int | None:
        """How many items of the whole list have to be read; None for all."""
        return None if self.limit is None else self.offset + self.limit

    @classmethod
    def of_command(cls) -> Page:
        """The part that the options of the command that runs ask for."""
        given = click.get_current_context().params
        return cls(given["offset"], None if given["pages"] == "all" else given["limit"])

    def of(self, items: Iterable[ItemT]) -> Iterator[ItemT]:
        """Takes this part of a list."""
        return islice(items, self.offset, self.end)


def page_options(*, limit: int | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the options, which the command gets as ``page``.

    Args:
        limit: Most rows unless something else is asked for; None for all.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--limit",
            type=click.IntRange(min=1),
            default=limit,
            show_default=limit is not None,
            help="Maximum number of rows.",
        )
        @click.option("--offset", type=click.IntRange(min=0), default=0, help="Skip this many rows.")
        @click.option(
            "--pages", type=click.Choice(["1", "all"]), default="1", help="With `all`: no maximum of rows."
        )
        @wraps(command)
        def wrapped(*args: Any, **options: Any) -> Any:
            page = Page.of_command()
            others = {name: value for name, value in options.items() if name not in _OPTIONS}
            return command(*args, page=page, **others)

        return wrapped

    return decorate
