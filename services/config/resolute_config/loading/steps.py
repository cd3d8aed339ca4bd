"""Converts the lengths of Determined 0.12's configs, each with a line that shows the conversion.

Those lengths are numbers of steps: fields of the searcher such as ``max_steps``, and periods that are
numbers. A layer with a ``searcher.max_length`` is not converted. Values of unexpected shape are left
unchanged, and validation reports them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

_USUAL = 100
"""Batches of a step, where the config does not say."""
_SIMPLE, _SIMPLE_NOW = "adaptive_simple", "adaptive_asha"
_LENGTHS = {
    "max_steps": "max_length",
    "target_trial_steps": "max_length",
    "step_budget": "budget",
    "steps_per_round": "length_per_round",
}
"""Fields of a searcher that count steps, and what says the same in batches."""
_PERIODS = ("min_validation_period", "min_checkpoint_period")


def without_steps(document: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Converts one layer.

    Args:
        document: The layer, as it was written.

    Returns:
        The layer without steps, and what was converted, for people.
    """
    converted = dict(document)
    searcher = document.get("searcher")
    per_step = document.get("batches_per_step")
    size = _USUAL if per_step is None else per_step
    if not _is_count(size, least=1):
        return converted, []
    if per_step is None:
        converted.pop("batches_per_step", None)
    shown = []
    if per_step is not None and document.get("scheduling_unit") is None:
        del converted["batches_per_step"]
        converted["scheduling_unit"] = size
        shown.append(f"batches_per_step: {size} is scheduling_unit: {size}")
    if isinstance(searcher, Mapping):
        converted["searcher"], of_searcher = _searcher(searcher, size)
        shown += of_searcher
    if not isinstance(searcher, Mapping) or searcher.get("max_length") is None:
        for name in _PERIODS:
            steps = document.get(name)
            if _is_count(steps, least=0):
                converted[name] = {"batches": steps * size}
                shown.append(f"{name}: {steps} is {{batches: {steps * size}}}")
    return converted, shown


def steps_warning(document: Mapping[str, Any]) -> list[str]:
    """One warning that shows what of a layer was converted; none if nothing was."""
    _, shown = without_steps(document)
    return [f"words of Determined 0.12 were converted: {'; '.join(shown)}"] if shown else []


def _searcher(searcher: Mapping[str, Any], size: int) -> tuple[dict[str, Any], list[str]]:
    converted, shown = dict(searcher), list[str]()
    if searcher.get("name") == _SIMPLE:
        converted["name"] = _SIMPLE_NOW
        shown.append(f"searcher.name: {_SIMPLE} is {_SIMPLE_NOW}")
    for old, now in _LENGTHS.items():
        steps = searcher.get(old)
        if steps is None:
            converted.pop(old, None)
        elif converted.get(now) is None and _is_count(steps, least=1):
            del converted[old]
            converted[now] = {"batches": steps * size}
            shown.append(f"searcher.{old}: {steps} is searcher.{now}: {{batches: {steps * size}}}")
    return converted, shown


def _is_count(value: Any, *, least: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
