"""``Trainer`` for trials with DeepSpeed's engines."""

from __future__ import annotations

from typing import Any

from resolute.pytorch.deepspeed.components import EngineComponentFactory
from resolute.pytorch.deepspeed.context import DeepSpeedTrialContext
from resolute.pytorch.deepspeed.trial import DeepSpeedTrial
from resolute.pytorch.training.trainer import Trainer as PyTorchTrainer


class Trainer(PyTorchTrainer):
    """Trains a ``DeepSpeedTrial``. ``fit`` works like that of ``resolute.pytorch.Trainer``.

    Args:
        trial: The trial.
        context: The context of the trial.

    Raises:
        TypeError: The trial is not a ``DeepSpeedTrial``.
        InvalidExperimentException: The trial has not wrapped an engine.
    """

    def __init__(self, trial: Any, context: DeepSpeedTrialContext) -> None:
        if not isinstance(trial, DeepSpeedTrial):
            raise TypeError(
                f"a {type(trial).__name__} is not a trial: its class must be derived from "
                "resolute.pytorch.deepspeed.DeepSpeedTrial"
            )
        self._set_up(trial, context, EngineComponentFactory(trial, context))
