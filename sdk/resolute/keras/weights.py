"""Weights of a model and the state of its optimizer, as files."""

from __future__ import annotations

from typing import Any

from resolute.keras.library import is_of_legacy
from resolute.trial_errors import InvalidCheckpointException

_SUFFIX = ".weights.h5"
"""Keras 3 writes to files of this name only."""


def save_weights(model: Any, path: str) -> None:
    """Saves the weights and the state of the optimizer.

    Args:
        model: The model.
        path: Of the files, without what Keras adds.
    """
    if is_of_legacy(model):
        model.save_weights(path, save_format="tf")
    else:
        model.save_weights(path + _SUFFIX)


def load_weights(model: Any, path: str) -> None:
    """Loads the files of ``save_weights``.

    Raises:
        ValueError: The model does not know its shapes yet.
        InvalidCheckpointException: The files are another model's.
    """
    if is_of_legacy(model):
        model.load_weights(path)
        return
    if not model.built:
        raise ValueError(
            f"the model {model.name!r} cannot take the weights of a checkpoint before it is built: begin it "
            "with keras.Input(...), or call it with a batch before fit()"
        )
    optimizer = model.optimizer
    if optimizer is not None and not optimizer.built:
        optimizer.build(model.trainable_variables)
    try:
        model.load_weights(path + _SUFFIX)
    except ValueError as failure:
        raise InvalidCheckpointException(
            f"the checkpoint does not fit the model {model.name!r}: {failure}"
        ) from failure
