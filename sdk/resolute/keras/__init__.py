"""Keras on the platform: a callback makes ``model.fit`` a trial.

::

    with resolute.core.init() as context:
        callback = DeterminedCallback(context, checkpoint=None, continue_id="digits")
        model.fit(x, y, epochs=5, validation_data=(x, y), callbacks=[callback])
"""

from resolute.keras.callback import DeterminedCallback
from resolute.keras.tensorboard import TensorBoard

__all__ = ["DeterminedCallback", "TensorBoard"]
