"""Hugging Face's ``Trainer`` on the platform: one callback makes a training a trial.

::

    with resolute.core.init() as context:
        callback = DetCallback(context, arguments)
        trainer = Trainer(model=model, args=arguments, callbacks=[callback], ...)
        trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)
"""

from resolute.transformers.callback import DetCallback

__all__ = ["DetCallback"]
