"""Lengths in steps, as Determined 0.12 counted them: converted to batches, each with a line that shows it.

A layer counts in steps where it has ``batches_per_step`` or ``searcher.max_steps``. Values of unexpected
shape stay as they are, for validation to name them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

_USUAL = 100
"""Batches of a step, where the config does not say."""
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
    in_steps = isinstance(searcher, Mapping) and searcher.get("max_steps") is not None
    per_step = document.get("batches_per_step")
    if not in_steps and per_step is None:
        return converted, []
    size = _USUAL if per_step is None else per_step
    if not _is_count(size, least=1):
        return converted, []
    shown = []
    if per_step is not None and document.get("scheduling_unit") is None:
        del converted["batches_per_step"]
        converted["scheduling_unit"] = size
        shown.append(f"batches_per_step: {size} is scheduling_unit: {size}")
    if isinstance(searcher, Mapping) and searcher.get("max_length") is None:
        steps = searcher.get("max_steps")
        if _is_count(steps, least=1):
            rest = {key: value for key, value in searcher.items() if key not in {"max_steps", "max_length"}}
            converted["searcher"] = {**rest, "max_length": {"batches": steps * size}}
            shown.append(f"searcher.max_steps: {steps} is searcher.max_length: {{batches: {steps * size}}}")
    for name in _PERIODS:
        steps = document.get(name)
        if _is_count(steps, least=0):
            converted[name] = {"batches": steps * size}
            shown.append(f"{name}: {steps} is {{batches: {steps * size}}}")
    return converted, shown


def steps_warning(document: Mapping[str, Any]) -> list[str]:
    """One warning that shows what of a layer was converted; none if nothing was."""
    _, shown = without_steps(document)
    return [f"lengths in steps of Determined 0.12 were converted: {'; '.join(shown)}"] if shown else []


def _is_count(value: Any, *, least: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
