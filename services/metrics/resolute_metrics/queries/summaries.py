"""Summaries of metrics: a fold over streams, never over reports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from resolute_metrics.store import streams
from resolute_metrics.store.schema import INTAKE
from resolute_metrics.store.streams import Stream

NUMBER = "number"


@dataclass(slots=True)
class Summary:
    """What is known of one metric of one trial, over all of its runs."""

    trial_id: str
    group: str
    name: str
    count: int = 0
    sum: float = 0.0
    min: float = math.inf
    max: float = -math.inf
    nonfinite_count: int = 0
    newest: tuple[int, int, int] = (-(2**63), -1, -1)
    """Steps, run and sequence of the last value."""
    kind: str = NUMBER
    last: Any = None
    """The last value; None when it is too large to repeat."""
    has_last: bool = False


def summarize(connection: Connection, trial_ids: Sequence[str], *, group: str = "") -> list[Summary]:
    """Summarizes the metrics of trials, by trial as asked, then group and name.

    Args:
        connection: Reads.
        trial_ids: UUIDs; those that never reported, or were deleted, have no summaries.
        group: Only this group; empty for all.
    """
    keys = INTAKE.find_trials(connection, list(trial_ids))
    by_trial: dict[int, list[Stream]] = {key: [] for key in keys.values()}
    for stream in streams.load(connection, keys.values(), group=group):
        by_trial[stream.trial_key].append(stream)
    return [
        summary
        for trial_id in dict.fromkeys(trial_ids)
        if trial_id in keys
        for summary in _of_trial(trial_id, by_trial[keys[trial_id]])
    ]


def _of_trial(trial_id: str, known: Iterable[Stream]) -> Iterator[Summary]:
    found: dict[tuple[str, str], Summary] = {}
    for stream in known:
        _add_numbers(found, trial_id, stream)
        _add_others(found, trial_id, stream)
    return (summary for _, summary in sorted(found.items()))


def _add_numbers(found: dict[tuple[str, str], Summary], trial_id: str, stream: Stream) -> None:
    newest = stream.last_step, stream.run, stream.last_sequence
    for name, count, total, low, high, nonfinite, last in zip(
        stream.names, *stream.aggregates.tolist(), strict=True
    ):
        key = stream.group, name
        summary = found.get(key)
        if summary is None:
            # The common case, a thousand times in a comparison: there is nothing to add to.
            found[key] = Summary(
                trial_id, *key, int(count), total, low, high, int(nonfinite), newest, NUMBER, last, True
            )
            continue
        summary.count += int(count)
        summary.sum += total
        summary.min = min(summary.min, low)
        summary.max = max(summary.max, high)
        summary.nonfinite_count += int(nonfinite)
        if newest > summary.newest:
            summary.newest, summary.kind, summary.last, summary.has_last = newest, NUMBER, last, True


def _add_others(found: dict[tuple[str, str], Summary], trial_id: str, stream: Stream) -> None:
    for name, other in stream.others.items():
        summary = found.setdefault((stream.group, name), Summary(trial_id, stream.group, name))
        newest = other.steps, stream.run, other.sequence
        if newest > summary.newest:
            summary.newest, summary.kind = newest, other.kind
            summary.last, summary.has_last = other.value, other.kept
