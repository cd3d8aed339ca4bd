"""Test mode: makes an experiment as short as possible."""

from __future__ import annotations

import random as _random
from collections.abc import Mapping
from typing import Any

from resolute_config.experiment import ExperimentConfig
from resolute_config.sections.hyperparameters import (
    Categorical,
    Const,
    DoubleRange,
    Hyperparameter,
    IntRange,
    Leaf,
)
from resolute_config.sections.length import Length
from resolute_config.sections.searcher import SingleSearcher

_ONE_BATCH = Length(1, "batches")
_KEEP_NOTHING = {
    "save_experiment_best": 0,
    "save_trial_best": 0,
    "save_trial_latest": 0,
    "keep_every": None,
}


def to_test_mode(config: ExperimentConfig) -> ExperimentConfig:
    """Make a config that trains one trial for one batch, keeps no checkpoint and never restarts.

    Hyperparameters become constants, drawn with the experiment's seed: equal configs give equal tests.
    """
    random = _random.Random(config.reproducibility.experiment_seed)  # noqa: S311  # a test, no secret
    searcher = SingleSearcher(
        metric=config.searcher.metric,
        smaller_is_better=config.searcher.smaller_is_better,
        source_trial_id=config.searcher.source_trial_id,
        source_checkpoint_uuid=config.searcher.source_checkpoint_uuid,
        max_length=_ONE_BATCH,
    )
    changes = {
        "searcher": searcher,
        "hyperparameters": _sampled(config.hyperparameters, random),
        "scheduling_unit": 1,
        "min_validation_period": _ONE_BATCH,
        "checkpoint_storage": config.checkpoint_storage.model_copy(update=_KEEP_NOTHING),
        "max_restarts": 0,
    }
    return config.model_copy(update=changes)


def _sampled(group: Mapping[str, Hyperparameter], random: _random.Random) -> dict[str, Any]:
    sampled: dict[str, Any] = {}
    for name in sorted(group):
        value = group[name]
        sampled[name] = (
            _sampled(value, random) if isinstance(value, Mapping) else Const(val=_draw(value, random))
        )
    return {name: sampled[name] for name in group}


def _draw(leaf: Leaf, random: _random.Random) -> Any:
    if isinstance(leaf, Const):
        return leaf.val
    if isinstance(leaf, Categorical):
        return random.choice(leaf.vals)
    if isinstance(leaf, IntRange):
        return random.randint(leaf.minval, leaf.maxval)
    drawn = random.uniform(leaf.minval, leaf.maxval)
    return drawn if isinstance(leaf, DoubleRange) else float(leaf.base**drawn)
