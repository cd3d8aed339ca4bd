"""Lightning's ``Trainer`` on the platform: two objects make a training a trial.

::

    with resolute.core.init() as context:
        callback = ResoluteCallback(context)
        trainer = Trainer(max_epochs=-1, callbacks=[callback], logger=ResoluteLogger(callback))
        trainer.fit(module, ckpt_path=callback.checkpoint_path)

Lightning's two names, ``lightning`` and ``pytorch_lightning``, are two libraries to Python: import the one
that you use first.
"""

from resolute.lightning.callback import ResoluteCallback
from resolute.lightning.logger import ResoluteLogger

__all__ = ["ResoluteCallback", "ResoluteLogger"]
