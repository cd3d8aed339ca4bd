"""Training with Keras: a callback makes ``model.fit`` a trial, or a trial is written as a class.

::

    with resolute.core.init() as context:
        callback = ResoluteCallback(context)
        model.fit(x, y, epochs=5, validation_data=(x, y), callbacks=[callback])
"""

from typing import TYPE_CHECKING, Any

from resolute.keras import callbacks
from resolute.keras.callbacks import TensorBoard as TFKerasTensorBoard
from resolute.keras.fit_callback import ResoluteCallback
from resolute.keras.tensorboard import TensorBoard
from resolute.keras.trial.checkpoint import load_model_from_checkpoint_path
from resolute.keras.trial.context import TFKerasExperimentalContext, TFKerasTrialContext
from resolute.keras.trial.data import ArrayLike, InputData, SequenceAdapter, _ArrayLikeAdapter
from resolute.keras.trial.definition import TFKerasTrainConfig, TFKerasTrial
from resolute.runtime.older_names import by_older_name

__all__ = [
    "ArrayLike",
    "InputData",
    "ResoluteCallback",
    "SequenceAdapter",
    "TFKerasExperimentalContext",
    "TFKerasTensorBoard",
    "TFKerasTrainConfig",
    "TFKerasTrial",
    "TFKerasTrialContext",
    "TensorBoard",
    "_ArrayLikeAdapter",
    "callbacks",
    "load_model_from_checkpoint_path",
]

if not TYPE_CHECKING:  # a checker is to know the names of today alone

    def __getattr__(name: str) -> Any:
        return by_older_name(__name__, name)
