"""Summaries of metrics, computed from the aggregates of streams, never from reports."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from resolute_metrics.store import streams
from resolute_metrics.store.streams import Stream

NUMBER = "number"


@dataclass(slots=True)
class Summary:
    """The summary of one metric of one trial, over all of its runs."""

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
    """Kind of the last value."""
    last: Any = None
    """The last value; None when it is too large to repeat."""
    has_last: bool = False


def summarize(
    connection: Connection,
    trials: Mapping[str, int],
    *,
    groups: Collection[str] = (),
    names: Collection[str] = (),
) -> Iterator[Summary]:
    """Summarizes the metrics of trials, by trial as given, then group and name.

    Args:
        connection: Reads.
        trials: Keys by UUID.
        groups: Only these groups; empty for all.
        names: Only these metrics; empty for all.
    """
    by_trial: dict[int, list[Stream]] = {key: [] for key in trials.values()}
    for stream in streams.load(connection, trials.values(), groups=groups):
        by_trial[stream.trial_key].append(stream)
    for trial_id, key in trials.items():
        yield from _of_trial(trial_id, by_trial[key], frozenset(names))


def _of_trial(trial_id: str, known: Iterable[Stream], names: frozenset[str]) -> Sequence[Summary]:
    by_metric: dict[tuple[str, str], Summary] = {}
    for stream in known:
        if names and names.isdisjoint(stream.fields()):
            continue
        _add_numbers(by_metric, trial_id, stream)
        _add_others(by_metric, trial_id, stream)
    return [summary for key, summary in sorted(by_metric.items()) if not names or key[1] in names]


def _add_numbers(by_metric: dict[tuple[str, str], Summary], trial_id: str, stream: Stream) -> None:
    newest = stream.last_step, stream.run, stream.last_sequence
    for name, count, total, low, high, nonfinite, last in zip(
        stream.names, *stream.aggregates.tolist(), strict=True
    ):
        key = stream.group, name
        summary = by_metric.get(key)
        if summary is None:
            # The common case, a thousand times in a comparison: there is nothing to add to.
            by_metric[key] = Summary(
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


def _add_others(by_metric: dict[tuple[str, str], Summary], trial_id: str, stream: Stream) -> None:
    for name, other in stream.others.items():
        summary = by_metric.setdefault((stream.group, name), Summary(trial_id, stream.group, name))
        newest = other.steps, stream.run, other.sequence
        if newest > summary.newest:
            summary.newest, summary.kind = newest, other.kind
            summary.last, summary.has_last = other.value, other.kept
