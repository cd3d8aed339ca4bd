"""Lists the data whose order Hugging Face's ``Trainer`` changes after a pause in the middle of an epoch."""

from __future__ import annotations

import logging
from typing import Any

from accelerate.data_loader import BatchSamplerShard, SeedableRandomSampler
from torch.utils.data import BatchSampler, SequentialSampler

from resolute.pytorch.data.generators import OwnGenerators
from resolute.pytorch.data.replay import nested_samplers

_log = logging.getLogger("resolute.transformers")
_REPEATABLE = {BatchSampler, BatchSamplerShard, SeedableRandomSampler, SequentialSampler}
"""They deal what follows from the seed and the number of the epoch."""


def warn_of_unrepeatable(loader: Any) -> None:
    """Warns of a sampler and of generators that the ``Trainer`` begins anew in each run.

    Args:
        loader: The training data.
    """
    for sampler in nested_samplers(loader)[1:]:
        if type(sampler) not in _REPEATABLE and not callable(getattr(sampler, "set_epoch", None)):
            _log.warning(
                "if the order of %s differs from epoch to epoch, a trial that is paused amid one is "
                "dealt some records twice and others never, as Trainer keeps no state of samplers: let the "
                "order follow from a method set_epoch(), which Trainer calls",
                type(sampler).__name__,
            )
    dataset = getattr(loader, "dataset", None)
    if OwnGenerators(dataset):
        _log.warning(
            "%s has a generator of random numbers, which begins anew after a pause, as Trainer keeps no "
            "state of data sets: let what it draws follow from the index of the record",
            type(dataset).__name__,
        )
