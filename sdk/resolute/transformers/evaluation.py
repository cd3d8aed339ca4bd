"""Determines whether the calling ``Trainer`` has data to evaluate on."""

from __future__ import annotations

import inspect

from transformers import Trainer

_LIBRARY = "transformers."
"""Methods of its modules evaluate on ``eval_dataset``; methods of other classes may use any data."""


def can_evaluate() -> bool:
    """Returns whether the ``Trainer`` that calls a callback can evaluate; True without a ``Trainer``.

    A ``Trainer`` without an ``eval_dataset`` raises when a callback requests an evaluation. Callbacks are
    given neither the ``Trainer`` nor the data set, and ``eval_dataloader`` of their arguments is None until
    the first evaluation. The stack of calls is the only place where they can look.
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
