"""Pages of summaries, in any order.

In the usual order, by trial, a page reads the streams of as many trials as it needs. Any other order needs
the summaries of all trials that match.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute_metrics.queries.summaries import NUMBER, Summary, summarize
from resolute_metrics.store.schema import INTAKE
from resolute_serving.pagination import OrderBy, is_text

IDENTITY = ("trial_id", "group", "name")
"""What tells summaries apart; the usual order."""
_TRIALS_AT_ONCE = 50
_LARGEST = sys.float_info.max


def _last_number(summary: Summary) -> float | None:
    return summary.last if summary.kind == NUMBER and not math.isnan(summary.last) else None


FIELDS: Mapping[str, Callable[[Summary], Any]] = {
    "trial_id": lambda summary: summary.trial_id,
    "group": lambda summary: summary.group,
    "name": lambda summary: summary.name,
    "count": lambda summary: summary.count,
    "min": lambda summary: summary.min if summary.count else None,
    "max": lambda summary: summary.max if summary.count else None,
    "last_number": _last_number,
    "last_steps": lambda summary: summary.newest[0],
}
"""What summaries can be ordered by; None comes last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryFilter:
    """A filter of summaries. Every condition that is not empty must hold."""

    trial_ids: frozenset[str] = frozenset()
    experiment_id: str = ""
    groups: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()


Position = Sequence[Any]
"""Where a summary stands in its order: plain data."""


def position_of(summary: Summary, order: Sequence[OrderBy]) -> Position:
    """Returns the position of a summary in an order."""
    return [FIELDS[by.field](summary) for by in _total(order)]


def is_position(value: Any, order: Sequence[OrderBy]) -> bool:
    """Returns whether a value has the form of a position in an order."""
    keys = _total(order)
    return isinstance(value, list) and len(value) == len(keys) and all(map(_can_be, value, keys))


def _can_be(value: Any, by: OrderBy) -> bool:
    if by.field in IDENTITY:
        return is_text(value)
    if isinstance(value, float):
        # Infinities have a place in the order; what is no number has that of None.
        return not math.isnan(value)
    return value is None or (isinstance(value, int) and abs(value) <= _LARGEST)


def read_summaries(
    connection: Connection, wanted: SummaryFilter, order: Sequence[OrderBy], *, after: Position | None = None
) -> Iterator[Summary]:
    """Yields summaries in order; the caller takes a page of them.

    Args:
        connection: Reads.
        wanted: Which summaries.
        order: What comes first; ties are broken by the usual order.
        after: Position of the last summary of the page before; None for the first page.
    """
    keys = _total(order)
    if [by.field for by in keys[:3]] == list(IDENTITY) and not any(by.descending for by in keys[:3]):
        summaries = _by_trial(connection, wanted, "" if after is None else str(after[0]))
    else:
        summaries = iter(sorted(_everything(connection, wanted), key=lambda summary: _key(summary, keys)))
    if after is None:
        return summaries
    bound = _comparable(after, keys)
    return itertools.dropwhile(lambda summary: _key(summary, keys) <= bound, summaries)


def _total(order: Sequence[OrderBy]) -> list[OrderBy]:
    """Returns the order, with the key of summaries as its last fields."""
    given = {by.field for by in order}
    return [*order, *(OrderBy(name) for name in IDENTITY if name not in given)]


def _by_trial(connection: Connection, wanted: SummaryFilter, first: str) -> Iterator[Summary]:
    trials = sorted(_trials(connection, wanted, first=first).items())
    for start in range(0, len(trials), _TRIALS_AT_ONCE):
        some = dict(trials[start : start + _TRIALS_AT_ONCE])
        yield from summarize(connection, some, groups=wanted.groups, names=wanted.names)


def _everything(connection: Connection, wanted: SummaryFilter) -> Iterator[Summary]:
    return summarize(connection, _trials(connection, wanted), groups=wanted.groups, names=wanted.names)


def _trials(connection: Connection, wanted: SummaryFilter, *, first: str = "") -> dict[str, int]:
    """Returns the keys of the matching trials by UUID, beginning with a UUID."""
    trials, experiments = INTAKE.trials, INTAKE.experiments
    query = (
        sa.select(trials.c.trial_id, trials.c.trial_key)
        .join(experiments, experiments.c.experiment_key == trials.c.experiment_key)
        .where(experiments.c.deleted_at.is_(None))
    )
    if wanted.trial_ids:
        query = query.where(
            trials.c.trial_id.in_([trial_id for trial_id in wanted.trial_ids if trial_id >= first])
        )
    if wanted.experiment_id:
        query = query.where(experiments.c.experiment_id == wanted.experiment_id)
    return {row.trial_id: row.trial_key for row in connection.execute(query) if row.trial_id >= first}


def _key(summary: Summary, keys: Sequence[OrderBy]) -> tuple[Any, ...]:
    return _comparable([FIELDS[by.field](summary) for by in keys], keys)


def _comparable(position: Position, keys: Sequence[OrderBy]) -> tuple[Any, ...]:
    return tuple(
        (value is None, _reversed(value) if by.descending else value)
        for value, by in zip(position, keys, strict=True)
    )


def _reversed(value: Any) -> Any:
    """Wraps a value so that it sorts in descending order."""
    if isinstance(value, str):
        # Ends above everything, so that what is longer comes first.
        return (*(-ord(character) for character in value), 1)
    return None if value is None else -value
