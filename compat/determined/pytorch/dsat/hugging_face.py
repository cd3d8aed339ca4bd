"""Adapts the arguments of Hugging Face's scripts to a DeepSpeed config that a search changes."""

from __future__ import annotations

import fcntl
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from determined.pytorch.dsat.config import AUTO, OVERWRITES, merge

_log = logging.getLogger("determined.pytorch.dsat")
_SAME = {
    "--per_device_train_batch_size": "train_micro_batch_size_per_gpu",
    "--gradient_accumulation_steps": "gradient_accumulation_steps",
}
"""Arguments that must agree with fields of the config."""


def get_hf_args_with_overwrites(args: list[str], hparams: Mapping[str, Any]) -> list[str]:
    """Changes the DeepSpeed config that arguments name, and returns arguments that agree with it.

    Args:
        args: Arguments of the script, with ``--deepspeed FILE`` among them.
        hparams: Hyperparameters; what they overwrite is written into FILE.

    Returns:
        The arguments; the same ones if nothing is overwritten.

    Raises:
        AssertionError: No file is named.
    """
    overwrites = hparams.get(OVERWRITES)
    if not overwrites:
        _log.info("no hyperparameter %s: the arguments stay as they are", OVERWRITES)
        return args
    path = get_hf_ds_config_path_from_args(args)
    assert path is not None, "the arguments must name a DeepSpeed config: --deepspeed FILE"
    # All ranks of a node do this to the same file.
    with Path(f"{path}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        config = merge(json.loads(Path(path).read_text()), overwrites)
        Path(path).write_text(json.dumps(config))
    return update_hf_args(args, config)


def get_hf_ds_config_path_from_args(args: list[str]) -> str | None:
    """Returns what follows ``--deepspeed`` in the arguments, if anything does."""
    for index, argument in enumerate(args):
        if argument == "--deepspeed" and index + 1 < len(args):
            return args[index + 1]
        if argument.startswith("--deepspeed="):
            return argument.partition("=")[2]
    return None


def update_hf_args(args: list[str], ds_config: Mapping[str, Any]) -> list[str]:
    """Returns arguments that agree with a DeepSpeed config; what it leaves open stays as it is."""
    updated = list(args)
    for argument, name in _SAME.items():
        value = ds_config.get(name, AUTO)
        if value == AUTO:
            continue
        at = next((i for i, given in enumerate(updated) if given.partition("=")[0] == argument), None)
        if at is None:
            _log.warning("%s %s was added: the DeepSpeed config says so", argument, value)
            updated += [argument, str(value)]
            continue
        end = at + 1 if "=" in updated[at] else at + 2
        if updated[at:end] != [argument, str(value)]:
            _log.warning("%s is %s now: the DeepSpeed config says so", argument, value)
        updated[at:end] = [argument, str(value)]
    return updated
