"""The class that a training in Keras is written as."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple

from resolute.keras.trial.context import TFKerasTrialContext


class TFKerasTrainConfig(NamedTuple):
    """Data and callbacks of a training."""

    training_data: Any
    validation_data: Any
    callbacks: list[Any]


class TFKerasTrial(abc.ABC):
    """A model and its data. Write one by overriding methods, and name it as the config's ``entrypoint``."""

    trial_controller_class: ClassVar[Any] = None
    trial_context_class: ClassVar[type] = TFKerasTrialContext

    def __init__(self, context: TFKerasTrialContext) -> None:
        """Keeps the context.

        Args:
            context: What the platform offers.
        """
        self.context = context

    @abc.abstractmethod
    def build_model(self) -> Any:
        """Returns a model that was given to ``context.wrap_model`` and then compiled."""

    @abc.abstractmethod
    def build_training_data_loader(self) -> Any:
        """Returns training data, with batches of ``context.get_per_slot_batch_size()``."""

    @abc.abstractmethod
    def build_validation_data_loader(self) -> Any:
        """Returns validation data."""

    def keras_callbacks(self) -> list[Any]:
        """Returns callbacks, of Keras or of ``resolute.keras.callbacks``. States are kept by their order."""
        return []

    def session_config(self) -> Any:
        """Is not used: sessions were those of TensorFlow 1."""
        return None
