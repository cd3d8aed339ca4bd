"""The base class of trials in Keras."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple

from resolute.keras.trial.context import TFKerasTrialContext


class TFKerasTrainConfig(NamedTuple):
    """Data and callbacks of a training.

    Examples:
        >>> from resolute.keras import TFKerasTrainConfig
        >>> TFKerasTrainConfig(training_data=([1], [2]), validation_data=([3], [6]), callbacks=[]).callbacks
        []
    """

    training_data: Any
    validation_data: Any
    callbacks: list[Any]


class TFKerasTrial(abc.ABC):
    """A model and its data. Derive a class that overrides methods; it is the config's ``entrypoint``.

    Examples:
        >>> import keras, numpy
        >>> from resolute.keras import TFKerasTrial
        >>> class SumTrial(TFKerasTrial):
        ...     def build_model(self):
        ...         hidden = keras.layers.Dense(self.context.get_hparam("hidden"))
        ...         layers = [keras.Input((4,)), hidden, keras.layers.Dense(1)]
        ...         model = self.context.wrap_model(keras.Sequential(layers))
        ...         model.compile(optimizer="adam", loss="mse")
        ...         return model
        ...     def build_training_data_loader(self):
        ...         x = numpy.random.rand(64, 4)
        ...         return x, x.sum(axis=1)
        ...     def build_validation_data_loader(self):
        ...         return self.build_training_data_loader()
        >>> from resolute import core
        >>> from resolute.keras import TFKerasTrialContext
        >>> with core.init() as core_context:
        ...     hparams = {"hidden": 8}
        ...     context = TFKerasTrialContext(core_context, hparams=hparams, exp_conf=None, trial_seed=0)
        ...     SumTrial(context).build_model().count_params()
        49
    """

    trial_controller_class: ClassVar[Any] = None
    trial_context_class: ClassVar[type] = TFKerasTrialContext

    def __init__(self, context: TFKerasTrialContext) -> None:
        """Stores the context.

        Args:
            context: What the platform offers.
        """
        self.context = context

    @abc.abstractmethod
    def build_model(self) -> Any:
        """Returns the model, wrapped by ``context.wrap_model`` and then compiled."""

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
