"""Divides a batch among slots."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from resolute.trial_errors import InvalidExperimentException

BATCH_SIZE = "global_batch_size"
_log = logging.getLogger("resolute.pytorch")


def calculate_batch_sizes(
    hparams: Mapping[str, Any], slots_per_trial: int, trialname: str
) -> tuple[int, int]:
    """Returns the records of a batch of one slot, and of all slots together.

    Args:
        hparams: Hyperparameters; ``global_batch_size`` is the batch of all slots.
        slots_per_trial: How many slots; less than 1 counts as 1.
        trialname: Name of the trial's class, for the error.

    Raises:
        InvalidExperimentException: ``global_batch_size`` is missing, no whole number, or less than the slots.
    """
    if BATCH_SIZE not in hparams:
        raise InvalidExperimentException(
            f"{trialname} needs the hyperparameter {BATCH_SIZE}: put it into the config's hyperparameters"
        )
    slots = max(slots_per_trial, 1)
    size = slot_batch_size(hparams[BATCH_SIZE], slots)
    return size, size * slots


def slot_batch_size(size: Any, slots: int) -> int:
    """Returns the records of a batch of one slot.

    Args:
        size: Records of a batch of all slots.
        slots: How many slots.

    Raises:
        InvalidExperimentException: The size is no whole number, or less than the slots.
    """
    if not isinstance(size, int) or isinstance(size, bool):
        raise InvalidExperimentException(
            f"the hyperparameter {BATCH_SIZE} is {size!r}; a whole number was expected"
        )
    if size < slots:
        raise InvalidExperimentException(
            f"the hyperparameter {BATCH_SIZE} is {size}, and the trial has {slots} slots: every slot needs a "
            "record; raise the one or lower the other"
        )
    if size % slots:
        whole = size // slots * slots
        _log.warning(
            "%s %d is not a multiple of the %d slots: each batch has %d records",
            BATCH_SIZE,
            size,
            slots,
            whole,
        )
    return size // slots
