"""Trains a LightningModule as a PyTorchTrial, for trials written for older releases."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import torch

from resolute.pytorch import PyTorchCallback, PyTorchTrial, PyTorchTrialContext
from resolute.pytorch.lightning.library import find_library
from resolute.pytorch.lightning.module_checks import check_module, is_overridden
from resolute.pytorch.lightning.module_optimizers import read_optimizers
from resolute.trial_errors import InvalidModelException


@dataclass
class _Position:
    """The attributes of ``trainer`` that a module reads."""

    optimizers: list[Any] = field(default_factory=list)
    global_step: int = 0
    current_epoch: int = 0
    is_global_zero: bool = True
    world_size: int = 1
    barebones: bool = False


class LightningAdapter(PyTorchTrial):
    """A trial made from a LightningModule. Derive a class that builds the data loaders.

    Args:
        context: The context of the trial.
        lightning_module: The module.
        precision: 32, or 16 for mixed precision.
        amp_backend: ``native`` or ``apex``, for mixed precision.
        amp_level: Level of apex.

    Raises:
        ValueError: The precision or its backend is unknown.
        InvalidModelException: The module needs a feature that only Lightning's own Trainer has.
    """

    def __init__(
        self,
        context: PyTorchTrialContext,
        lightning_module: Any,
        precision: int = 32,
        amp_backend: str = "native",
        amp_level: str = "O2",
    ) -> None:
        warnings.warn(
            "LightningAdapter is for trials of older releases: use Lightning's own Trainer with "
            "resolute.lightning.ResoluteCallback",
            FutureWarning,
            stacklevel=2,
        )
        if precision not in {16, 32}:
            raise ValueError(f"precision is {precision!r}; 16 or 32 was expected")
        if amp_backend not in {"native", "apex"}:
            raise ValueError(f"amp_backend is {amp_backend!r}; 'native' or 'apex' was expected")
        self._base: type = find_library().LightningModule
        check_module(lightning_module, self._base)
        self.context = context
        self._module = lightning_module
        if precision == 16 and amp_backend == "native":
            context.experimental.use_amp()
        self._wrapped = context.wrap_model(lightning_module)
        optimizers, schedules = read_optimizers(lightning_module.configure_optimizers())
        self._optimizers = [context.wrap_optimizer(optimizer) for optimizer in optimizers]
        for schedule in schedules:
            context.wrap_lr_scheduler(schedule.scheduler, schedule.mode, schedule.frequency)
        if precision == 16 and amp_backend == "apex":
            context.configure_apex_amp(context.models, context.optimizers, opt_level=amp_level)
        self._position = _Position(
            self._optimizers,
            is_global_zero=context.distributed.rank == 0,
            world_size=context.distributed.size,
        )
        lightning_module._trainer = self._position
        self._replace_methods()

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        """Returns the callbacks that call the module's hooks. Add them to callbacks of your own."""
        return {"_lightning_module": _ModuleHooks(self._module, self._position)}

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        """Trains with one batch, with each optimizer in turn."""
        self._position.global_step, self._position.current_epoch = batch_idx, epoch_idx
        _call(self._module.on_train_batch_start, batch, batch_idx)
        metrics: dict[str, Any] = {}
        for index, optimizer in enumerate(self._optimizers):
            for name, value in self._step(batch, batch_idx, index, optimizer).items():
                metrics[f"opt{index}_{name}" if name in metrics else name] = value
        _call(self._module.on_train_batch_end, metrics, batch, batch_idx)
        return metrics

    def evaluate_batch(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        """Evaluates the batch."""
        _call(self._module.on_validation_batch_start, batch, batch_idx, 0)
        returned = self._module.validation_step(batch, batch_idx)
        _call(self._module.on_validation_batch_end, returned, batch, batch_idx, 0)
        return _as_metrics(returned)

    def _step(self, batch: Any, batch_idx: int, index: int, optimizer: Any) -> dict[str, Any]:
        several = len(self._optimizers) > 1
        arguments: list[Any] = [batch, batch_idx]
        if several:
            if "optimizer_idx" not in inspect.signature(self._module.training_step).parameters:
                raise InvalidModelException(
                    "training_step must take optimizer_idx where configure_optimizers returns several"
                )
            arguments.append(index)
            self._module.toggle_optimizer(optimizer)
        metrics = _as_metrics(self._training_step(*arguments))
        aggregates = self.context._aggregation_frequency > 1
        if metrics:
            self.context.backward(metrics["loss"])
            self._module.on_after_backward()
            self.context.step_optimizer(optimizer, auto_zero_grads=aggregates)
            self._module.on_before_zero_grad(optimizer)
            if not aggregates:
                optimizer.zero_grad()
        if several:
            self._module.untoggle_optimizer(optimizer)
        return metrics

    def _training_step(self, *arguments: Any) -> Any:
        """Calls the training step through ``forward`` of the wrapper that exchanges gradients."""
        if self._wrapped is self._module:
            return self._module.training_step(*arguments)
        forward = self._module.forward

        def step(*given: Any) -> Any:
            self._module.forward = forward
            return self._module.training_step(*given)

        self._module.forward = step
        try:
            return self._wrapped(*arguments)
        finally:
            self._module.forward = forward

    def _replace_methods(self) -> None:
        module, methods = self._module, _ModuleMethods(self.context, self._position)
        for name, method in (("log", methods.log), ("log_dict", methods.log_dict), ("print", methods.print)):
            if not is_overridden(module, name, self._base):
                setattr(module, name, method)


class _ModuleMethods:
    """The methods of a module that need a Trainer of Lightning, such as logging and printing, without one."""

    def __init__(self, context: PyTorchTrialContext, position: _Position) -> None:
        self._context = context
        self._position = position

    def log(self, name: str, value: Any, **options: Any) -> None:
        """Writes a number for TensorBoard, on rank 0."""
        if options:
            raise InvalidModelException(
                f"log() takes a name and a value in LightningAdapter, not {', '.join(sorted(options))}"
            )
        value = value.item() if isinstance(value, torch.Tensor) else value
        if not isinstance(value, Real):
            raise InvalidModelException(f"log() takes numbers in LightningAdapter; {name} is {value!r}")
        if self._position.is_global_zero:
            writer = self._context.get_tensorboard_writer()
            writer.add_scalar(name, float(value), self._position.global_step)

    def log_dict(self, values: dict[str, Any], **options: Any) -> None:
        """Writes numbers for TensorBoard, on rank 0."""
        for name, value in values.items():
            self.log(name, value, **options)

    def print(self, *args: Any, **options: Any) -> None:
        """Prints, on rank 0."""
        if self._position.is_global_zero:
            print(*args, **options)


class _ModuleHooks(PyTorchCallback):
    """Calls the hooks of a module for epochs, validations and checkpoints."""

    def __init__(self, module: Any, position: _Position) -> None:
        self._module = module
        self._position = position

    def on_checkpoint_load_start(self, checkpoint: dict[str, Any] | None) -> None:
        if checkpoint is not None:
            self._module.on_load_checkpoint(checkpoint)

    def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
        self._module.on_save_checkpoint(checkpoint)

    def on_training_epoch_start(self, epoch_idx: int) -> None:
        self._position.current_epoch = epoch_idx
        self._module.on_train_epoch_start()

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        self._module.on_train_epoch_end()

    def on_validation_epoch_start(self) -> None:
        self._module.on_validation_epoch_start()

    def on_validation_epoch_end(self, outputs: list[Any]) -> None:
        older = getattr(self._module, "validation_epoch_end", None)
        if older is not None:
            older(outputs)
        self._module.on_validation_epoch_end()


def _call(hook: Callable[..., Any], *arguments: Any) -> None:
    """Calls a hook with as many arguments as it takes: they differ between releases of Lightning."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(hook).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        hook(*arguments)
    else:
        hook(*arguments[: sum(parameter.kind in kinds for parameter in parameters)])


def _as_metrics(returned: Any) -> dict[str, Any]:
    if returned is None:
        return {}
    return dict(returned) if isinstance(returned, dict) else {"loss": returned}
