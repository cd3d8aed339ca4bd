"""Checks that checkpoints will contain everything that a trial trains."""

from __future__ import annotations

import itertools
import logging
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.optim import lr_scheduler as torch_schedulers
from torch.utils.data import Dataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

from resolute.pytorch.data.stateful import is_stateful_loader
from resolute.pytorch.trial.base_context import TrialContext
from resolute.pytorch.trial.callbacks import PyTorchCallback, overrides
from resolute.pytorch.trial.context import PyTorchTrialContext, parameters_of
from resolute.pytorch.trial.definition import PyTorchTrial
from resolute.trial_errors import InvalidExperimentException

_log = logging.getLogger("resolute.pytorch")
_ITERATORS = (_BaseDataLoaderIter, itertools.cycle)
"""What data is gone through by; others, such as generators and `filter`, may go through parameters too."""
_MOST_NUMBERS = 10_000
"""A tensor of more is not compared."""


def check_wrapped(trial: PyTorchTrial, context: PyTorchTrialContext) -> None:
    """Checks that everything that is trained was wrapped.

    Raises:
        InvalidExperimentException: No model or no optimizer was wrapped, an optimizer trains parameters of no
            wrapped model, an optimizer or scheduler of the trial was not wrapped, or the trial has begun to
            go through a loader whose place no checkpoint holds.
    """
    _check_iterators(trial, context)
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
        _check_parameters(trial, optimizer, wrapped)
    stepped = {id(parameter) for optimizer in context.optimizers for parameter in parameters_of(optimizer)}
    for name, value in _attributes(trial):
        unsaved = f"{name} ({_name(value)}) was not wrapped, so checkpoints would hold none of its state"
        if isinstance(value, torch.optim.Optimizer) and not stepped.issuperset(map(id, parameters_of(value))):
            raise InvalidExperimentException(
                f"{unsaved}: keep what context.wrap_optimizer(optimizer) returns"
            )
        if _is_scheduler(value) and id(value) not in _wrapped_schedulers(context):
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


class UnsavedStateWarning(PyTorchCallback):
    """Warns, at the first checkpoint, of state of a trial that changed while training and is not in it.

    Args:
        trial: The trial.
        callbacks: Its callbacks, by name.
    """

    def __init__(self, trial: PyTorchTrial, callbacks: Mapping[str, PyTorchCallback]) -> None:
        self._trial = trial
        self._callbacks = {
            f"callback {name!r}": callback
            for name, callback in callbacks.items()
            if isinstance(callback, PyTorchCallback) and not overrides(callback, "state_dict")
        }
        self._first: dict[str, Any] | None = None

    def on_training_start(self) -> None:
        """Remembers the state as it is now."""
        self._first = dict(self._numbers())

    def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
        """Compares it, once."""
        first, self._first = self._first, None
        if first is None:
            return
        changed = [name for name, value in self._numbers() if name in first and first[name] != value]
        changed += [name for name, value in _attributes(self._trial) if _is_lost_iterator(value)]
        if changed:
            _log.warning(
                "a pause forgets what no checkpoint holds, and this changed while training: %s. Keep what "
                "training depends on in a PyTorchCallback with state_dict() and load_state_dict()",
                ", ".join(sorted(changed)),
            )

    def _numbers(self) -> Iterator[tuple[str, Any]]:
        """Yields numbers that training may depend on; lists and texts are mostly records of what was."""
        yield from _numbers_of(_attributes(self._trial))
        for name, value in _attributes(self._trial):
            if isinstance(value, Dataset):
                yield from _numbers_of((f"{name}.{inner}", number) for inner, number in vars(value).items())
        for name, callback in self._callbacks.items():
            yield from _numbers_of((f"{name}.{inner}", value) for inner, value in vars(callback).items())


def _numbers_of(attributes: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    return ((name, number) for name, value in attributes if (number := _number(value)) is not None)


def _number(value: object) -> Any:
    """Returns what a number, or a tensor of a few, is compared by; None of any other value."""
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter):
        return value.tolist() if value.numel() <= _MOST_NUMBERS else None
    return None


def _check_parameters(trial: PyTorchTrial, optimizer: Any, wrapped: set[int]) -> None:
    strays = [parameter for parameter in parameters_of(optimizer) if id(parameter) not in wrapped]
    if not strays:
        return
    owner = next(
        (
            f" of {name}"
            for name, value in _attributes(trial)
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


def _attributes(trial: Any) -> Iterator[tuple[str, Any]]:
    """Yields the attributes of a trial, and of the one inside an adapter of the first releases' style."""
    inner = getattr(trial, "trial", None)
    for owner in (trial, inner) if hasattr(inner, "build_model") else (trial,):
        for name, value in vars(owner).items():
            yield f"self.{name}", value


def _check_iterators(trial: PyTorchTrial, context: PyTorchTrialContext) -> None:
    if not context.experimental.reproducibility_checks:
        return  # the trial said that it cares for that
    for name, value in _begun_iterators(trial):
        raise InvalidExperimentException(
            f"{name} ({_name(value)}) has begun to go through data, and a pause would forget its place: keep "
            "what has state_dict() and load_state_dict() as an attribute, such as torchdata's "
            "StatefulDataLoader, and iterate over it in train_batch(); or care for its place yourself, with "
            "context.get_initial_batch() or a callback, and call "
            "context.experimental.disable_dataset_reproducibility_checks()"
        )


def _begun_iterators(trial: PyTorchTrial) -> Iterator[tuple[str, object]]:
    """Yields the iterators over data of a trial, and those over loaders in its objects that have no state."""
    for name, value in _attributes(trial):
        if isinstance(value, _ITERATORS):
            yield name, value
        elif not (isinstance(value, (nn.Module, TrialContext)) or hasattr(value, "state_dict")):
            for inner, held in getattr(value, "__dict__", {}).items():
                if isinstance(held, _BaseDataLoaderIter):
                    yield f"{name}.{inner}", held


def _is_lost_iterator(value: object) -> bool:
    """Whether an object has a place in data that no checkpoint holds: not one over a stateful loader."""
    if isinstance(value, types.GeneratorType):
        # One that is at its end has no place any more, such as one over parameters that an optimizer took.
        return value.gi_frame is not None and not is_stateful_loader(value.gi_frame.f_locals.get("self"))
    return isinstance(value, Iterator) and not hasattr(value, "state_dict")


def _is_scheduler(value: object) -> bool:
    return isinstance(value, (torch_schedulers.LRScheduler, torch_schedulers.ReduceLROnPlateau))


def _wrapped_schedulers(context: PyTorchTrialContext) -> set[int]:
    """Identities of the wrapped schedulers, and of those that they are made of."""
    outer = [scheduler.scheduler for scheduler in context.lr_schedulers]
    inner = [one for scheduler in outer for one in getattr(scheduler, "_schedulers", ())]
    return {id(scheduler) for scheduler in (*outer, *inner)}


def _trainable_and_unwrapped(module: nn.Module, wrapped: set[int]) -> bool:
    return any(parameter.requires_grad and id(parameter) not in wrapped for parameter in module.parameters())


def _name(value: object) -> str:
    return type(value).__name__
