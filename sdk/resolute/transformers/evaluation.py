"""Tells whether the calling ``Trainer`` has data to evaluate on."""

from __future__ import annotations

import inspect

from transformers import Trainer

_LIBRARY = "transformers."
"""Methods of its modules evaluate on ``eval_dataset``; others on what they like."""


def can_evaluate() -> bool:
    """Whether it has; called from a callback. True where no ``Trainer`` is among the callers.

    A ``Trainer`` that is asked for an evaluation without a data set raises, and callbacks are not given the
    ``Trainer``: it is found among the callers.
    """
    frame = inspect.currentframe()
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, Trainer):
            own = (type(caller).evaluate, type(caller).get_eval_dataloader)
            return caller.eval_dataset is not None or not all(
                method.__module__.startswith(_LIBRARY) for method in own
            )
        frame = frame.f_back
    return True
