"""DeepSpeed configs that hyperparameters name and partly overwrite."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CONFIG = "deepspeed_config"
"""Hyperparameter: path of the DeepSpeed config, relative to the code."""
OVERWRITES = "overwrite_deepspeed_args"
"""Hyperparameter: what counts instead of fields of that config."""
DSAT_MODE = "_use_dsat_mode"
"""Hyperparameter of trials of a search for a DeepSpeed config."""
AUTO = "auto"


def merge(base: Mapping[str, Any], overwrites: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a mapping with the fields of another over its own, at every depth."""
    merged = copy.deepcopy(dict(base))
    for name, value in overwrites.items():
        known = merged.get(name)
        both = isinstance(known, Mapping) and isinstance(value, Mapping)
        merged[name] = merge(known, value) if both else copy.deepcopy(value)  # type: ignore[arg-type]
    return merged


def get_ds_config_from_hparams(hparams: Mapping[str, Any], base_dir: Path | str = ".") -> dict[str, Any]:
    """Returns the DeepSpeed config that hyperparameters name, with what they overwrite.

    Args:
        hparams: Hyperparameters.
        base_dir: Directory that the config's path is relative to.

    Raises:
        AssertionError: No hyperparameter names a config.
        FileNotFoundError: There is no such file.
    """
    assert CONFIG in hparams, f"the hyperparameter {CONFIG} is missing: the path of a DeepSpeed config"
    base: dict[str, Any] = json.loads((Path(base_dir) / hparams[CONFIG]).read_text())
    return merge(base, hparams.get(OVERWRITES) or {})


def with_batch_sizes(config: Mapping[str, Any], *, slots: int) -> dict[str, Any]:
    """Returns a config whose three batch sizes agree, by its micro batch.

    Args:
        config: A DeepSpeed config with ``train_micro_batch_size_per_gpu``.
        slots: Ranks of a trial.
    """
    steps = config.get("gradient_accumulation_steps")
    steps = 1 if steps in {None, AUTO} else int(steps)
    micro = int(config["train_micro_batch_size_per_gpu"])
    return {
        **config,
        "gradient_accumulation_steps": steps,
        "train_batch_size": micro * steps * slots,
    }


def stage_space(stage: int) -> dict[str, list[Any]]:
    """Returns the values that fields of ``zero_optimization`` may take in a stage of ZeRO."""
    sizes = [multiple * 10**power for power in range(6, 10) for multiple in (1, 5)]
    space: dict[str, list[Any]] = {"reduce_bucket_size": sizes, "allgather_bucket_size": sizes}
    if stage >= 2:
        for name in ("overlap_comm", "reduce_scatter", "contiguous_gradients"):
            space[name] = [True, False]
    if stage >= 3:
        space["allgather_partitions"] = [True, False]
    return space
