"""Warnings about values of a config that are valid but probably not intended."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from resolute.contracts.documents.faults import dotted
from resolute_config.experiment import ExperimentConfig
from resolute_config.sections.hyperparameters import Const, LogRange, leaves
from resolute_config.sections.searcher import RandomSearcher

_VAST = 1e12
"""A largest value that no search means."""
_SMALL = 0.1
"""An exponent below this is a value that was meant."""
_BOUNDS = frozenset(
    {"min", "max", "low", "high", "lower", "upper", "minval", "maxval", "minvalue", "maxvalue"}
)
_LISTS = frozenset({"values", "choices", "vals"})
_FIELDS = _BOUNDS | _LISTS | {"distribution", "base", "count", "step", "q", "log"}
"""What searches of other tools call the parts of a hyperparameter."""


def doubtful_values(config: ExperimentConfig) -> Iterator[str]:
    """Yields a sentence for each value that looks like a mistake.

    Args:
        config: The complete config.
    """
    yield from _like_ranges(config.hyperparameters, ("hyperparameters",))
    varies = False
    for path, leaf in leaves(config.hyperparameters):
        varies = varies or not isinstance(leaf, Const)
        if isinstance(leaf, LogRange):
            yield from _bounds_of_log(dotted(("hyperparameters", *path)), leaf)
    searcher = config.searcher
    if isinstance(searcher, RandomSearcher) and searcher.max_trials > 1 and not varies:
        yield (
            f"searcher.max_trials is {searcher.max_trials} and no hyperparameter varies: "
            "the trials differ by their seeds only"
        )


def _like_ranges(group: Mapping[str, object], path: tuple[str, ...]) -> Iterator[str]:
    """Yields a sentence for each group of constants that looks like a range in the words of another tool."""
    for name, value in group.items():
        if not isinstance(value, Mapping):
            continue
        yield from _like_ranges(value, (*path, name))
        plain = {
            inner.lower().replace("_", ""): leaf for inner, leaf in value.items() if isinstance(leaf, Const)
        }
        lists = any(isinstance(plain[key].val, (list, tuple)) for key in _LISTS & plain.keys())
        if (
            len(plain) == len(value)
            and plain.keys() <= _FIELDS
            and (len(_BOUNDS & plain.keys()) > 1 or lists)
        ):
            yield (
                f"{dotted((*path, name))} is a group of constants ({', '.join(value)}), which every trial "
                "gets as it is: a range is written as {type: double, minval: …, maxval: …}, and a choice as "
                "{type: categorical, vals: […]}"
            )


def _bounds_of_log(path: str, leaf: LogRange) -> Iterator[str]:
    low, high = math.pow(leaf.base, leaf.minval), math.pow(leaf.base, leaf.maxval)
    if leaf.base == 1:
        yield f"{path} is always 1: its base is 1"
    small = 0 < leaf.minval < _SMALL or (leaf.minval > 0 and leaf.maxval <= 1)
    if leaf.base <= 1 or not (small or high >= _VAST):
        return
    text = f"{path} goes from {low:.5g} to {high:.5g}: its minval and maxval are exponents of {leaf.base:g}"
    if leaf.minval > 0:
        exponents = [f"{math.log(bound, leaf.base):.4g}" for bound in (leaf.minval, leaf.maxval)]
        text += f"; from {leaf.minval:g} to {leaf.maxval:g} is minval: {exponents[0]}, maxval: {exponents[1]}"
    yield text
