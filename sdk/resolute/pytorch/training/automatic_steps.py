"""Automatic steps: gradients and optimizer steps for a ``train_batch`` that only returns a loss."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

import torch

from resolute.pytorch.trial.context import PyTorchTrialContext, parameters_of
from resolute.pytorch.trial.definition import PyTorchTrial

_log = logging.getLogger("resolute.pytorch")
_OWN_STEPS = frozenset({"backward", "step_optimizer"})


class AutomaticSteps:
    """Calls ``train_batch``, and steps the optimizer if ``train_batch`` does not.

    The first batch of a run decides. Steps are automatic if it returns a loss with gradients, has computed no
    gradients of the only optimizer's parameters, and the code contains no calls that compute gradients, which
    a later batch may reach.

    Args:
        trial: The trial.
        context: Its context.
    """

    def __init__(self, trial: PyTorchTrial, context: PyTorchTrialContext) -> None:
        self._trial = trial
        self._context = context
        self._automatic: bool | None = None
        self._reached: list[bool] = []
        """Filled while gradients for a step are computed."""

    def train(self, batch: Any, epoch: int, step: int) -> Any:
        """Trains one batch and returns the result of ``train_batch``.

        Raises:
            TypeError: Steps are automatic, and this batch has no loss, or the trial computed gradients of it.
        """
        if self._automatic is None:
            returned = self._decide(batch, epoch, step)
        else:
            self._reached.clear()
            returned = self._trial.train_batch(batch, epoch, step)
        if self._automatic:
            self._step(returned)
        return returned

    def _decide(self, batch: Any, epoch: int, step: int) -> Any:
        context = self._context
        only = context.optimizers[0] if len(context.optimizers) == 1 else None
        parameters: list[Any] = (
            [parameter for parameter in parameters_of(only) if parameter.requires_grad]
            if only is not None
            else []
        )
        handles = [parameter.register_hook(self._note) for parameter in parameters]
        try:
            returned = self._trial.train_batch(batch, epoch, step)
        finally:
            for handle in handles:
                handle.remove()
        left = bool(parameters) and not self._reached and _loss_of(returned) is not None
        has_own_steps = left and _has_own_steps(type(self._trial))
        self._automatic = left and not has_own_steps
        if self._automatic and context.distributed.rank == 0:
            _log.info("train_batch() returns only a loss: gradients and optimizer steps are done for it")
        if has_own_steps and context.distributed.rank == 0:
            _log.warning(
                "the first train_batch() computed no gradients of its loss; its code calls backward() or "
                "step_optimizer(), so steps are left to it. If no other batch takes any either, nothing is "
                "learned: remove such calls, and steps are automatic"
            )
        if self._automatic:
            # A penalty may take gradients by torch.autograd.grad, which a step would not see.
            parameters[0].register_post_accumulate_grad_hook(self._note)
        return returned

    def _note(self, _: torch.Tensor) -> None:
        self._reached.append(True)

    def _step(self, returned: Any) -> None:
        if self._reached:
            raise TypeError(
                "train_batch() computed gradients itself, and steps are automatic since the first batch had "
                "none: return {'loss': loss.detach()} from a trial that takes its own steps"
            )
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


def _has_own_steps(trial_class: type[PyTorchTrial]) -> bool:
    """Whether ``train_batch``, or what it uses of its class and its module, calls for gradients or steps."""
    waiting: list[Any] = [inspect.getattr_static(trial_class, "train_batch")]
    seen: set[CodeType] = set()
    while waiting:
        function = waiting.pop()
        if not isinstance(function, FunctionType) or function.__code__ in seen:
            continue
        seen.add(function.__code__)
        names = set(_names(function.__code__))
        if names & _OWN_STEPS:
            return True
        for name in names:
            waiting += [inspect.getattr_static(trial_class, name, None), function.__globals__.get(name)]
    return False


def _names(code: CodeType) -> Iterator[str]:
    """The names that code uses, and functions within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
