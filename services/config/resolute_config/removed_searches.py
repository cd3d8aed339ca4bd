"""Removed search methods, each with the closest existing one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

_USUAL_LENGTH, _USUAL_TRIALS = ("batches", 1000), 16
_KEPT = ("smaller_is_better", "mode", "divisor", "max_rungs")
"""Fields that mean the same there."""


def instead(searcher: Mapping[str, Any]) -> str:
    """Returns an ``adaptive_asha`` with the metric, the length and about the trials of a search.

    Args:
        searcher: The section; what it does not say, or says wrong, is made up.
    """
    unit, length = _length(searcher.get("max_length")) or _all_rounds(searcher) or _USUAL_LENGTH
    budget = _length(searcher.get("budget"))
    trials = _count(searcher.get("population_size"))
    if not trials and budget is not None and budget[0] == unit:
        trials = max(budget[1] // length, 1)
    metric = searcher.get("metric")
    meant: dict[str, Any] = {
        "name": "adaptive_asha",
        "metric": metric if isinstance(metric, str) and metric else "M",
        "max_length": {unit: length},
        "max_trials": trials or _USUAL_TRIALS,
        **{name: searcher[name] for name in _KEPT if isinstance(searcher.get(name), (bool, int, str))},
    }
    written = yaml.safe_dump(meant, default_flow_style=True, sort_keys=False, width=10_000)
    return f"adaptive_asha, such as {written.strip()}"


def _all_rounds(searcher: Mapping[str, Any]) -> tuple[str, int] | None:
    """How long a member of a population trains in all."""
    each, rounds = _length(searcher.get("length_per_round")), _count(searcher.get("num_rounds"))
    return (each[0], each[1] * rounds) if each is not None and rounds else None


def _length(value: Any) -> tuple[str, int] | None:
    """The unit and the number of a length."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    ((unit, number),) = value.items()
    return (unit, number) if isinstance(unit, str) and _count(number) else None


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
