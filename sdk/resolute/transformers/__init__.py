"""Training with Hugging Face's ``Trainer``: one callback makes it a trial.

::

    with resolute.core.init() as context:
        callback = ResoluteCallback(context, arguments)
        trainer = Trainer(model=model, args=arguments, callbacks=[callback], ...)
        trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)
"""

from typing import TYPE_CHECKING, Any

from resolute.runtime.older_names import by_older_name
from resolute.transformers.callback import ResoluteCallback

__all__ = ["ResoluteCallback"]

if not TYPE_CHECKING:  # a checker is to know the names of today alone

    def __getattr__(name: str) -> Any:
        return by_older_name(__name__, name)
