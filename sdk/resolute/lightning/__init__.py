"""Training with Lightning's ``Trainer``: a callback and a logger make it a trial.

::

    with resolute.core.init() as context:
        callback = ResoluteCallback(context)
        trainer = Trainer(max_epochs=-1, callbacks=[callback], logger=ResoluteLogger(callback))
        trainer.fit(module, ckpt_path=callback.checkpoint_path)

Lightning has two names, ``lightning`` and ``pytorch_lightning``, which Python treats as two libraries. Import
the one that you use before this module.
"""

from resolute.lightning.callback import ResoluteCallback
from resolute.lightning.logger import ResoluteLogger

__all__ = ["ResoluteCallback", "ResoluteLogger"]
