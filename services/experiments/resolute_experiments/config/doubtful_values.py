"""What a config says rightly and hardly means, so that its author is warned."""

from __future__ import annotations

import math
from collections.abc import Iterator

from resolute.contracts.documents.faults import dotted
from resolute_experiments.config.experiment import ExperimentConfig
from resolute_experiments.config.sections.hyperparameters import Const, LogRange, leaves
from resolute_experiments.config.sections.searcher import RandomSearcher

_VAST = 1e12
"""A largest value that no search means."""


def doubtful_values(config: ExperimentConfig) -> Iterator[str]:
    """Yields a sentence for each value that looks like a mistake.

    Args:
        config: The complete config.
    """
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


def _bounds_of_log(path: str, leaf: LogRange) -> Iterator[str]:
    low, high = math.pow(leaf.base, leaf.minval), math.pow(leaf.base, leaf.maxval)
    if leaf.base <= 1 or not ((leaf.minval > 0 and leaf.maxval < 1) or high >= _VAST):
        return
    text = f"{path} goes from {low:.5g} to {high:.5g}: its minval and maxval are exponents of {leaf.base:g}"
    if leaf.minval > 0:
        exponents = [f"{math.log(bound, leaf.base):.4g}" for bound in (leaf.minval, leaf.maxval)]
        text += f"; from {leaf.minval:g} to {leaf.maxval:g} is minval: {exponents[0]}, maxval: {exponents[1]}"
    yield text
