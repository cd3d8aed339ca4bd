"""Gradients and steps for a ``train_batch`` that returns a loss and leaves them to the platform."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import torch

from resolute.pytorch.trial.context import PyTorchTrialContext, parameters_of
from resolute.pytorch.trial.definition import PyTorchTrial

_log = logging.getLogger("resolute.pytorch")


class AutomaticSteps:
    """Calls ``train_batch``, and then takes the step that it leaves to the platform.

    It is left if the first batch of the run computes no gradient of the only optimizer's parameters, by
    whatever call, and returns a loss that has some.

    Args:
        trial: The trial.
        context: Its context.
    """

    def __init__(self, trial: PyTorchTrial, context: PyTorchTrialContext) -> None:
        self._trial = trial
        self._context = context
        self._automatic: bool | None = None

    def train(self, batch: Any, epoch: int, step: int) -> Any:
        """Trains one batch and returns what ``train_batch`` did.

        Raises:
            TypeError: Steps are automatic, and this batch has no loss.
        """
        if self._automatic is None:
            returned = self._decide(batch, epoch, step)
        else:
            returned = self._trial.train_batch(batch, epoch, step)
        if self._automatic:
            self._step(returned)
        return returned

    def _decide(self, batch: Any, epoch: int, step: int) -> Any:
        context = self._context
        only = context.optimizers[0] if len(context.optimizers) == 1 else None
        parameters: list[Any] = (
            [one for one in parameters_of(only) if one.requires_grad] if only is not None else []
        )
        reached: list[bool] = []
        handles = [one.register_hook(lambda _: reached.append(True)) for one in parameters]
        try:
            returned = self._trial.train_batch(batch, epoch, step)
        finally:
            for handle in handles:
                handle.remove()
        self._automatic = bool(parameters) and not reached and _loss_of(returned) is not None
        if self._automatic and self._context.distributed.rank == 0:
            _log.info("train_batch() returns a loss and takes no step: gradients and steps are automatic")
        return returned

    def _step(self, returned: Any) -> None:
        loss = _loss_of(returned)
        if loss is None:
            raise TypeError(
                "train_batch() returned no loss with gradients, and steps are automatic since the first "
                "batch did: return {'loss': loss} for every batch, or call context.backward() and "
                "context.step_optimizer()"
            )
        self._context.backward(loss)
        self._context.step_optimizer(self._context.optimizers[0])


def _loss_of(returned: Any) -> torch.Tensor | None:
    """The loss among what ``train_batch`` returned, if gradients can be computed of it."""
    loss = returned.get("loss") if isinstance(returned, Mapping) else returned
    differentiable = isinstance(loss, torch.Tensor) and loss.requires_grad and loss.numel() == 1
    return loss if differentiable else None
