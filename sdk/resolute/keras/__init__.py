"""Keras on the platform: a callback makes ``model.fit`` a trial, or a trial is written as a class.

::

    with resolute.core.init() as context:
        callback = DeterminedCallback(context, checkpoint=None, continue_id="digits")
        model.fit(x, y, epochs=5, validation_data=(x, y), callbacks=[callback])
"""

from resolute.keras import callbacks
from resolute.keras.callbacks import TensorBoard as TFKerasTensorBoard
from resolute.keras.fit_callback import DeterminedCallback
from resolute.keras.tensorboard import TensorBoard
from resolute.keras.trial.checkpoint import load_model_from_checkpoint_path
from resolute.keras.trial.context import TFKerasExperimentalContext, TFKerasTrialContext
from resolute.keras.trial.data import ArrayLike, InputData, SequenceAdapter, _ArrayLikeAdapter
from resolute.keras.trial.definition import TFKerasTrainConfig, TFKerasTrial

__all__ = [
    "ArrayLike",
    "DeterminedCallback",
    "InputData",
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
