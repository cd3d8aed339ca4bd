"""Checks that checkpoints will contain everything that a trial trains."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.optim import lr_scheduler as torch_schedulers
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

from resolute.pytorch.data.held_objects import is_function_or_class, walk
from resolute.pytorch.trial.callbacks import PyTorchCallback, overrides
from resolute.pytorch.trial.context import PyTorchTrialContext, parameters_of
from resolute.pytorch.trial.definition import PyTorchTrial
from resolute.trial_errors import InvalidExperimentException

_log = logging.getLogger("resolute.pytorch")
_ITERATORS = (_BaseDataLoaderIter, itertools.cycle)
"""What data is gone through by; others, such as generators and `filter`, may go through parameters too."""
_SCHEDULERS = (torch_schedulers.LRScheduler, torch_schedulers.ReduceLROnPlateau)


def check_wrapped(
    trial: PyTorchTrial, context: PyTorchTrialContext, callbacks: Mapping[str, PyTorchCallback]
) -> None:
    """Checks that everything that is trained was wrapped.

    Args:
        trial: The trial.
        context: Its context.
        callbacks: Its callbacks, by name; those that keep their state themselves are left alone.

    Raises:
        InvalidExperimentException: No model or no optimizer was wrapped, an optimizer trains parameters of no
            wrapped model, an optimizer or scheduler of the trial was not wrapped, or the trial has begun to
            go through a loader whose place no checkpoint holds.
    """
    held = list(_held(trial, context, callbacks))
    _check_iterators(held, context)
    if not context.models:
        raise InvalidExperimentException(
            f"{_name(trial)} has wrapped no model, so checkpoints would hold no weights and ranks would "
            "exchange no gradients: in its constructor, keep what context.wrap_model(model) returns"
        )
    if not context.optimizers:
        raise InvalidExperimentException(
            f"{_name(trial)} has wrapped no optimizer, so checkpoints would hold none of its state: in the "
            "trial's constructor, keep what context.wrap_optimizer(optimizer) returns"
        )
    if context._precision.apex is not None:
        return  # apex trains copies of parameters
    wrapped = {id(parameter) for model in context.models for parameter in model.parameters()}
    for optimizer in context.optimizers:
        _check_parameters(held, optimizer, wrapped)
    stepped = {id(parameter) for optimizer in context.optimizers for parameter in parameters_of(optimizer)}
    schedulers = wrapped_schedulers(context)
    for name, value in held:
        unsaved = f"{name} ({_name(value)}) was not wrapped, so checkpoints would hold none of its state"
        if isinstance(value, torch.optim.Optimizer) and not stepped.issuperset(map(id, parameters_of(value))):
            raise InvalidExperimentException(
                f"{unsaved}: keep what context.wrap_optimizer(optimizer) returns"
            )
        if isinstance(value, _SCHEDULERS) and not any(value is scheduler for scheduler in schedulers):
            raise InvalidExperimentException(
                f"{unsaved}: pass it to context.wrap_lr_scheduler(), with LRScheduler.StepMode.MANUAL_STEP "
                "if the trial steps it"
            )
        if isinstance(value, nn.Module) and _trainable_and_unwrapped(value, wrapped):
            _log.warning(
                "%s (%s) has parameters and was not wrapped: checkpoints do not hold them; keep what "
                "context.wrap_model(model) returns if they change while training",
                name,
                _name(value),
            )


def wrapped_schedulers(context: PyTorchTrialContext) -> list[Any]:
    """Returns the wrapped schedulers, and those that they are made of."""
    outer = [scheduler.scheduler for scheduler in context.lr_schedulers]
    inner = [
        inner_scheduler for scheduler in outer for inner_scheduler in getattr(scheduler, "_schedulers", ())
    ]
    return [*outer, *inner]


def _held(
    trial: Any, context: PyTorchTrialContext, callbacks: Mapping[str, PyTorchCallback]
) -> Iterator[tuple[str, Any]]:
    """Yields the attributes of a trial and its callbacks by name, also those of an adapted legacy trial."""
    inner = getattr(trial, "trial", None)
    owners = [trial, inner] if hasattr(inner, "build_model") else [trial]
    for owner in owners:
        others = [other for other in owners if other is not owner]
        for path, value in walk(owner, without=(context, *others), enters=_may_train):
            yield f"self{path}", value
    for name, callback in callbacks.items():
        if not overrides(callback, "state_dict"):
            for path, value in walk(callback, without=(context, *owners), enters=_may_train):
                yield f"callback {name!r}{path}", value


def _may_train(value: object) -> bool:
    """Whether an object may hold what is trained: not if it keeps its state itself, or is data."""
    if is_function_or_class(value) or isinstance(value, (Dataset, DataLoader)):
        return False
    return isinstance(value, nn.Module) or not hasattr(value, "state_dict")


def _check_parameters(held: list[tuple[str, Any]], optimizer: Any, wrapped: set[int]) -> None:
    strays = [parameter for parameter in parameters_of(optimizer) if id(parameter) not in wrapped]
    if not strays:
        return
    owner = next(
        (
            f" of {name}"
            for name, value in held
            if isinstance(value, nn.Module)
            and any(parameter is strays[0] for parameter in value.parameters())
        ),
        "",
    )
    raise InvalidExperimentException(
        f"the optimizer {_name(optimizer)} trains {len(strays)} parameters{owner} that belong to no wrapped "
        "model, so checkpoints would not hold them: pass their module to context.wrap_model(), and make the "
        "optimizer of the parameters of what that returns"
    )


def _check_iterators(held: list[tuple[str, Any]], context: PyTorchTrialContext) -> None:
    if not context.experimental.reproducibility_checks:
        return  # the trial declared that it does that itself
    for name, value in held:
        if isinstance(value, _ITERATORS) and not hasattr(value, "state_dict"):
            raise InvalidExperimentException(
                f"{name} ({_name(value)}) has begun to go through data, and a pause would forget its place: "
                "keep what has state_dict() and load_state_dict() as an attribute, such as torchdata's "
                "StatefulDataLoader, and iterate over it in train_batch(); or care for its place yourself, "
                "with context.get_initial_batch() or a callback, and call "
                "context.experimental.disable_dataset_reproducibility_checks()"
            )


def _trainable_and_unwrapped(module: nn.Module, wrapped: set[int]) -> bool:
    return any(parameter.requires_grad and id(parameter) not in wrapped for parameter in module.parameters())


def _name(value: object) -> str:
    return type(value).__name__
