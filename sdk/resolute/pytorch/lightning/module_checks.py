"""Checks of a LightningModule for features that a PyTorchTrial does not support."""

from __future__ import annotations

import inspect
from typing import Any

from resolute.trial_errors import InvalidModelException

_NOT_CALLED = (
    "backward",
    "get_progress_bar_dict",
    "manual_backward",
    "on_fit_end",
    "on_fit_start",
    "on_pretrain_routine_end",
    "on_pretrain_routine_start",
    "on_test_batch_end",
    "on_test_batch_start",
    "on_test_end",
    "on_test_epoch_end",
    "on_test_epoch_start",
    "on_test_start",
    "optimizer_step",
    "optimizer_zero_grad",
    "setup",
    "tbptt_split_batch",
    "teardown",
    "test_dataloader",
    "test_epoch_end",
    "test_step",
    "test_step_end",
    "training_step_end",
    "transfer_batch_to_device",
    "validation_step_end",
)
"""Hooks of Lightning's own Trainer that have no counterpart here."""
_STEPS = ("training_step", "validation_step", "on_train_batch_start", "on_validation_batch_start")
_REMEDY = (
    "leave it out, or train with Lightning's own Trainer and resolute.lightning.ResoluteCallback "
    "(docs/integrations.md)"
)


def check_module(module: Any, base: type) -> None:
    """Checks that a module uses no feature that would be ignored.

    Args:
        module: The LightningModule.
        base: Lightning's class of it.

    Raises:
        InvalidModelException: It overrides a hook that is never called, or has its own way to optimize.
    """
    names = [name for name in _NOT_CALLED if is_overridden(module, name, base)]
    if names:
        raise _refused(f"{type(module).__name__} overrides {', '.join(names)}")
    for name in _STEPS:
        parameters = inspect.signature(getattr(module, name)).parameters
        for unknown in ("dataloader_idx", "hiddens"):
            if unknown in parameters and is_overridden(module, name, base):
                raise _refused(f"{name} of {type(module).__name__} takes {unknown}")
    if not getattr(module, "automatic_optimization", True):
        raise _refused(f"{type(module).__name__} optimizes manually")
    if getattr(module, "_trainer", None) is not None:
        raise _refused(f"{type(module).__name__} belongs to a Trainer of Lightning")


def is_overridden(module: Any, name: str, base: type) -> bool:
    """Returns whether the class of a module overrides a method."""
    own = getattr(type(module), name, None)
    return own is not None and own is not getattr(base, name, None)


def _refused(what: str) -> InvalidModelException:
    return InvalidModelException(f"Unsupported usage in LightningAdapter: {what}; {_REMEDY}")
