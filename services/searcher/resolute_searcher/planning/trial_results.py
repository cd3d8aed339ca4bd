"""What a search has tried, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from resolute_searcher.log.entry import Entry
from resolute_searcher.log.events import ValidationCompleted, ValidationReported
from resolute_searcher.log.operations import Create
from resolute_searcher.spec.space import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialResult:
    """One trial with a result.

    Attributes:
        hparams: Its hyperparameters by dotted name; nested groups have no entry of their own.
        metric: Its best finite metric.
    """

    hparams: Mapping[str, Json]
    metric: float


def trial_results(entries: Iterable[Entry], *, smaller_is_better: bool) -> list[TrialResult]:
    """Reads the trials that have a finite metric from a log, in order of creation."""
    better = min if smaller_is_better else max
    created: dict[str, Mapping[str, Json]] = {}
    best: dict[str, float] = {}
    for entry in entries:
        event = entry.event
        if isinstance(event, ValidationCompleted | ValidationReported) and math.isfinite(event.metric):
            known = best.get(event.trial_key, event.metric)
            best[event.trial_key] = better(known, event.metric)
        for operation in entry.operations:
            if isinstance(operation, Create):
                created[operation.trial_key] = operation.hparams
    return [
        TrialResult(hparams=leaves(hparams), metric=best[trial_key])
        for trial_key, hparams in created.items()
        if trial_key in best
    ]


def leaves(tree: Mapping[str, Json], prefix: str = "") -> dict[str, Json]:
    """Returns the values of nested mappings that are no mappings, by dotted name."""
    found: dict[str, Json] = {}
    for name in sorted(tree):
        value = tree[name]
        if isinstance(value, Mapping):
            found.update(leaves(value, f"{prefix}{name}."))
        else:
            found[prefix + name] = value
    return found
