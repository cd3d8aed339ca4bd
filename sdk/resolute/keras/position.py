"""The position of a ``fit`` at a checkpoint, and resuming ``fit`` there."""

from __future__ import annotations

import pickle
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from resolute.keras.library import is_of_legacy

STATE_FILE = "callback_state"


@dataclass(frozen=True)
class Position:
    """The state of a ``ResoluteCallback``."""

    epoch: int
    """The last epoch that was trained, from 0."""
    steps_completed: int
    """Batches trained, over all runs."""
    continue_id: int | str
    """Whose training it is."""
    training_length: int | None
    """Batches of an epoch."""
    validation_length: int | None
    """Batches of a validation."""

    def write(self, directory: Path) -> None:
        """Writes the file."""
        (directory / STATE_FILE).write_bytes(pickle.dumps(asdict(self)))

    @classmethod
    def read(cls, directory: Path) -> Position | None:
        """Reads the file; None if there is none."""
        path = directory / STATE_FILE
        if not path.exists():
            return None
        return cls(**pickle.loads(path.read_bytes()))  # noqa: S301 - a checkpoint is trusted code


class _TrainingState:
    """The object that ``fit`` of ``tf_keras`` asks for its first epoch and step."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch

    def maybe_load_initial_counters_from_ckpt(self, *_args: Any, **_options: Any) -> tuple[int, int]:
        """Returns the epoch and the batch at which ``fit`` starts."""
        return self._epoch, 0


def begin_at(model: Any, epoch: int | None) -> None:
    """Sets the first epoch of the current ``fit``; None keeps the ``initial_epoch`` of its caller."""
    if is_of_legacy(model):
        model._training_state = None if epoch is None else _TrainingState(epoch)
    else:
        model._initial_epoch = epoch
