"""Checks the sections of a merged config against each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from resolute.contracts.documents.faults import Fault, describe, dotted
from resolute_config.sections.entrypoint import is_trial_class
from resolute_config.sections.hyperparameters import (
    Categorical,
    Const,
    DoubleRange,
    Hyperparameter,
    IntRange,
    Leaf,
    LogRange,
    leaves,
)
from resolute_config.sections.resources import Resources
from resolute_config.sections.searcher import CommonSearcher, GridSearcher
from resolute_config.sections.storage import CommonStorage

MAX_GRID_POINTS = 100_000
"""Most trials of a grid: the searcher lays the whole grid out in memory."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check with the fields that it reads. It runs if each of them is valid by itself."""

    needs: tuple[str, ...]
    run: Callable[..., Iterator[Fault]]


def cross_faults(fields: Mapping[str, Any], *, require_entrypoint: bool) -> Iterator[Fault]:
    """Yield what is wrong between the fields.

    Args:
        fields: The fields that are good by themselves, defaults included.
        require_entrypoint: Whether a config without an entrypoint is at fault.
    """
    for check in CHECKS:
        if all(name in fields for name in check.needs):
            yield from check.run(**{name: fields[name] for name in check.needs})
    if require_entrypoint and "entrypoint" in fields and fields["entrypoint"] is None:
        expected = "the command that trains, such as: entrypoint: python3 train.py"
        yield Fault("entrypoint", "missing", expected, incomplete=True)


def _grid(searcher: CommonSearcher, hyperparameters: Mapping[str, Hyperparameter]) -> Iterator[Fault]:
    if not isinstance(searcher, GridSearcher):
        return
    points = 1
    complete = True
    for path, leaf in leaves(hyperparameters):
        if isinstance(leaf, (IntRange, DoubleRange, LogRange)) and leaf.count is None:
            complete = False
            expected = "the number of points on the grid, because searcher.name is grid"
            yield Fault(dotted(("hyperparameters", *path, "count")), "missing", expected)
        points *= _points(leaf)
    if complete and points > MAX_GRID_POINTS:
        problem = f"the grid has {points} points"
        yield Fault(
            "hyperparameters", problem, f"at most {MAX_GRID_POINTS}; give smaller counts or use random"
        )


def _points(leaf: Leaf) -> int:
    if isinstance(leaf, Const):
        return 1
    if isinstance(leaf, Categorical):
        return len(leaf.vals)
    count = leaf.count or 1
    return min(count, leaf.maxval - leaf.minval + 1) if isinstance(leaf, IntRange) else count


def _slots(resources: Resources) -> Iterator[Fault]:
    most, needed = resources.max_slots, resources.slots_per_trial
    if most is not None and most < needed:
        expected = f"slots_per_trial ({needed}) or more: no trial could ever start"
        yield Fault("resources.max_slots", f"found {most}", expected)


def _batch_size(
    entrypoint: str | tuple[str, ...] | None,
    hyperparameters: Mapping[str, Hyperparameter],
    resources: Resources,
) -> Iterator[Fault]:
    """A Trial class shares its batch among its slots; each needs a part of it."""
    batch = hyperparameters.get("global_batch_size")
    if not is_trial_class(entrypoint) or not isinstance(batch, Const):
        return
    size, slots = batch.val, resources.slots_per_trial
    path = "hyperparameters.global_batch_size"
    if not _is_positive_integer(size):
        yield Fault(path, f"found {describe(size)}", "an integer of 1 or more, for a Trial class")
    elif size < slots:
        expected = f"resources.slots_per_trial ({slots}) or more"
        yield Fault(path, f"global_batch_size {describe(size)} is less than slots", expected)


def _epochs_kept(
    checkpoint_storage: CommonStorage,
    hyperparameters: Mapping[str, Hyperparameter],
    records_per_epoch: int,
) -> Iterator[Fault]:
    """How many batches an epoch has follows from its records and one size of batch."""
    every = checkpoint_storage.keep_every
    if every is None or every.epochs is None:
        return
    batch = hyperparameters.get("global_batch_size")
    path = "checkpoint_storage.keep_every.epochs"
    if not records_per_epoch:
        yield Fault(path, f"found {every.epochs}", "records_per_epoch with it, or batches in its place")
    elif not isinstance(batch, Const) or not _is_positive_integer(batch.val):
        expected = "a fixed hyperparameters.global_batch_size with it, or batches in its place"
        yield Fault(path, f"found {every.epochs}", expected)


def _is_positive_integer(value: Any) -> bool:
    return (
        not isinstance(value, bool)
        and isinstance(value, (int, float))
        and value >= 1
        and math.floor(value) == value
    )


def _workspace(workspace: str, project: str) -> Iterator[Fault]:
    if bool(workspace) != bool(project):
        absent, given = ("project", "workspace") if workspace else ("workspace", "project")
        yield Fault(
            absent, "missing", f"both workspace and project, or neither; {given} is given", incomplete=True
        )


CHECKS: tuple[Check, ...] = (
    Check(("searcher", "hyperparameters"), _grid),
    Check(("resources",), _slots),
    Check(("entrypoint", "hyperparameters", "resources"), _batch_size),
    Check(("workspace", "project"), _workspace),
    Check(("checkpoint_storage", "hyperparameters", "records_per_epoch"), _epochs_kept),
)
