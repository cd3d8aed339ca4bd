"""What a trial asks of the platform."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from resolute import core
from resolute.pytorch.backends import Backend, choose_backend
from resolute.pytorch.data import to_device
from resolute.pytorch.devices import choose_device
from resolute.pytorch.experimental_context import PyTorchExperimentalContext
from resolute.pytorch.hyperparameters import Settings
from resolute.pytorch.precision import Precision
from resolute.pytorch.reducers import ReducerContext
from resolute.pytorch.schedulers import LRScheduler, StepMode
from resolute.trial_errors import InternalException, InvalidExperimentException

_log = logging.getLogger("resolute.pytorch")


class PyTorchTrialContext(Settings, ReducerContext):
    """Everything that a trial needs of the platform. Get it from ``pytorch.init()``.

    Attributes:
        device: Where this rank trains.
        distributed: The other ranks.
        experimental: What may still change.
        lr_schedulers: The wrapped schedulers.
        models: The wrapped models.
        optimizers: The wrapped optimizers.
        profiler: Torch's profiler, once ``set_profiler`` was called.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the documented constructor
        self,
        core_context: core.Context,
        trial_seed: int | None,
        hparams: Mapping[str, Any] | None,
        slots_per_trial: int,
        num_gpus: int,
        exp_conf: Mapping[str, Any] | None,
        aggregation_frequency: int,
        steps_completed: int,
        managed_training: bool,
        debug_enabled: bool,
        enable_tensorboard_logging: bool = True,
        *,
        backend: Backend | None = None,
    ) -> None:
        if aggregation_frequency < 1:
            raise InvalidExperimentException(
                f"aggregation_frequency is {aggregation_frequency}; it must be at least 1"
            )
        Settings.__init__(self, hparams, exp_conf, slots=max(slots_per_trial, 1))
        ReducerContext.__init__(self, core_context.distributed.allgather)
        self._core = core_context
        self._trial_seed = trial_seed
        self._aggregation_frequency = aggregation_frequency
        self._steps_completed = steps_completed
        self._managed_training = managed_training
        self._debug_enabled = debug_enabled
        self._tensorboard_logging = enable_tensorboard_logging
        self._stop_requested = False
        self._batch_idx: int | None = None
        self._epoch_length: int | None = None
        self._average_aggregated_gradients = True
        self._writer: Any = None
        self._warned_types: set[type] = set()
        self._precision = Precision()
        self._backend = backend or choose_backend(core_context.distributed)
        self.distributed = core_context.distributed
        self.device = choose_device(self.distributed.local_rank)
        self.experimental = PyTorchExperimentalContext(self)
        self.models: list[nn.Module] = []
        self.optimizers: list[Any] = []
        self.lr_schedulers: list[LRScheduler] = []
        self.profiler: Any = None

    # What is wrapped.

    def wrap_model(self, model: nn.Module) -> Any:
        """Puts a model on the device and under the care of the platform; one of ``torch.compile`` too.

        Args:
            model: The model.

        Returns:
            What to call in its place.

        Raises:
            InvalidExperimentException: ``configure_apex_amp`` was called before.
        """
        self._precision.wrap_forward(model, self.device)
        wrapped = self._backend.wrap_model(model.to(self.device), self.device)
        self.models.append(wrapped)
        return wrapped

    def wrap_optimizer(
        self,
        optimizer: Any,
        backward_passes_per_step: int = 1,
        fp16_compression: bool | None = None,
        average_aggregated_gradients: bool | None = None,
    ) -> Any:
        """Puts an optimizer under the care of the platform.

        Args:
            optimizer: The optimizer, of parameters of wrapped models.
            backward_passes_per_step: How often ``backward`` is called for each batch with gradients of this
                optimizer. For Horovod.
            fp16_compression: Whether gradients travel in half precision. For Horovod.
            average_aggregated_gradients: Whether aggregated gradients are divided by their number; default
                what the config says, else True.

        Returns:
            What to step in its place.

        Raises:
            InvalidExperimentException: ``backward_passes_per_step`` is less than 1.
        """
        if backward_passes_per_step < 1:
            raise InvalidExperimentException(
                f"backward_passes_per_step is {backward_passes_per_step}; it must be at least 1"
            )
        if average_aggregated_gradients is not None:
            self._average_aggregated_gradients = average_aggregated_gradients
        compression = None
        if fp16_compression:
            compression = getattr(getattr(self._backend, "_hvd", None), "Compression", None)
            compression = getattr(compression, "fp16", None)
        wrapped = self._backend.wrap_optimizer(
            optimizer,
            self.models,
            passes=backward_passes_per_step * self._aggregation_frequency,
            compression=compression,
        )
        self.optimizers.append(wrapped)
        return wrapped

    def wrap_lr_scheduler(self, lr_scheduler: Any, step_mode: StepMode, frequency: int = 1) -> Any:
        """Puts a learning-rate scheduler under the care of the platform.

        Args:
            lr_scheduler: The scheduler, of a wrapped optimizer.
            step_mode: When it steps.
            frequency: It steps only every so many epochs or batches.

        Returns:
            The scheduler itself.

        Raises:
            InvalidExperimentException: Its optimizer was not wrapped, or it is a ``ReduceLROnPlateau`` that
            is
                not stepped manually.
            TypeError: ``step_mode`` is no ``LRScheduler.StepMode``.
        """
        inner = lr_scheduler.scheduler if isinstance(lr_scheduler, LRScheduler) else lr_scheduler
        wrapped = LRScheduler(inner, step_mode, frequency)
        optimizer = getattr(inner, "optimizer", None)
        if optimizer is not None and not any(optimizer is known for known in self.optimizers):
            raise InvalidExperimentException(
                "the scheduler's optimizer was not wrapped: call wrap_optimizer() first, and make the "
                "scheduler of "
                "what it returns"
            )
        self.lr_schedulers.append(wrapped)
        return lr_scheduler

    def wrap_scaler(self, scaler: Any) -> Any:
        """Puts a ``GradScaler`` under the care of the platform; the trial scales, steps and updates itself.

        Raises:
            InvalidExperimentException: A model was wrapped before, or there is another way of mixed
            precision.
        """
        return self._precision.wrap_scaler(scaler, models=len(self.models))

    def configure_apex_amp(  # noqa: PLR0913, PLR0917 - the documented signature
        self,
        models: Any,
        optimizers: Any,
        enabled: bool | None = True,
        opt_level: str | None = "O1",
        cast_model_type: torch.dtype | None = None,
        patch_torch_functions: bool | None = None,
        keep_batchnorm_fp32: bool | str | None = None,
        master_weights: bool | None = None,
        loss_scale: float | str | None = None,
        cast_model_outputs: torch.dtype | None = None,
        num_losses: int | None = 1,
        verbosity: int | None = 1,
        min_loss_scale: float | None = None,
        max_loss_scale: float | None = 2.0**24,
    ) -> tuple[Any, Any]:
        """Puts wrapped models and optimizers under NVIDIA's apex, with the arguments of its ``initialize``.

        Raises:
            InvalidExperimentException: apex is not installed, or there is another way of mixed precision.
        """
        models, optimizers = self._precision.configure_apex(
            models,
            optimizers,
            enabled=bool(enabled),
            size=self.distributed.size,
            opt_level=opt_level,
            cast_model_type=cast_model_type,
            patch_torch_functions=patch_torch_functions,
            keep_batchnorm_fp32=keep_batchnorm_fp32,
            master_weights=master_weights,
            loss_scale=loss_scale,
            cast_model_outputs=cast_model_outputs,
            num_losses=num_losses,
            verbosity=verbosity,
            min_loss_scale=min_loss_scale,
            max_loss_scale=max_loss_scale,
        )
        self.models = models if isinstance(models, list) else [models]
        self.optimizers = optimizers if isinstance(optimizers, list) else [optimizers]
        return models, optimizers

    # Training a batch.

    def to_device(self, data: Any) -> Any:
        """Moves a batch, however nested, to this rank's device."""
        return to_device(data, self.device, self._warned_types)

    def backward(
        self,
        loss: torch.Tensor,
        gradient: torch.Tensor | None = None,
        retain_graph: bool = False,
        create_graph: bool = False,
    ) -> None:
        """Computes gradients of a loss, as ``loss.backward()`` does.

        Args:
            loss: The loss.
            gradient: Gradient with respect to the loss; None for a loss of one number.
            retain_graph: Whether the graph is kept for another pass.
            create_graph: Whether gradients can be differentiated again.

        Raises:
            InvalidExperimentException: With apex, it is called a second time for a batch.
        """
        with self._precision.scaled(loss, self.optimizers) as scaled:
            scaled.backward(  # type: ignore[no-untyped-call]
                gradient=gradient, retain_graph=retain_graph, create_graph=create_graph
            )

    def step_optimizer(
        self,
        optimizer: Any,
        clip_grads: Callable[[Iterable[torch.Tensor]], Any] | None = None,
        auto_zero_grads: bool = True,
        scaler: Any = None,
    ) -> None:
        """Steps an optimizer, unless this batch only adds to gradients that are aggregated.

        Args:
            optimizer: A wrapped optimizer.
            clip_grads: Called with the parameters before the step, to change their gradients in place.
            auto_zero_grads: Whether gradients are reset after the step.
            scaler: The trial's own ``GradScaler``, if it has one.

        Raises:
            InvalidExperimentException: Gradients are aggregated and ``auto_zero_grads`` is off.
        """
        aggregated = self._aggregation_frequency
        if aggregated > 1:
            if not auto_zero_grads:
                raise InvalidExperimentException(
                    "step_optimizer(auto_zero_grads=False) cannot be combined with an aggregation_frequency "
                    "above 1"
                )
            if not self._is_optimizer_step():
                return
        self._backend.synchronize(optimizer)
        divide = aggregated > 1 and self._average_aggregated_gradients

        def prepare() -> None:
            if divide:
                _divide_gradients(optimizer, aggregated)
            if clip_grads is not None:
                clip_grads(_parameters(optimizer))

        with self._backend.stepping(optimizer):
            self._precision.step(optimizer, scaler, before=prepare if divide or clip_grads else None)
        if auto_zero_grads:
            optimizer.zero_grad()

    def _is_optimizer_step(self) -> bool:
        return (self.current_train_batch() + 1) % self._aggregation_frequency == 0

    # Where training is.

    def current_train_batch(self) -> int:
        """Returns the number of the batch that is being trained, from 0, over all runs of the trial.

        Raises:
            InternalException: Training has not begun.
        """
        if self._batch_idx is None:
            raise InternalException("training has not begun: there is no current batch yet")
        return self._batch_idx

    def current_train_epoch(self) -> int:
        """Returns the number of the epoch that is being trained, from 0.

        Raises:
            InternalException: Training has not begun.
        """
        return self.current_train_batch() // self._length_of_epoch()

    def is_epoch_start(self) -> bool:
        """Returns whether the current batch is the first of its epoch.

        Raises:
            InternalException: Training has not begun.
        """
        return self.current_train_batch() % self._length_of_epoch() == 0

    def is_epoch_end(self) -> bool:
        """Returns whether the current batch is the last of its epoch.

        Raises:
            InternalException: Training has not begun.
        """
        return (self.current_train_batch() + 1) % self._length_of_epoch() == 0

    def get_initial_batch(self) -> int:
        """Returns how many batches were trained before this process, for loaders that skip them."""
        return self._steps_completed

    def get_stop_requested(self) -> bool:
        """Returns whether the trial asked to be stopped."""
        return self._stop_requested

    def set_stop_requested(self, stop_requested: bool) -> None:
        """Asks to stop at the next report, validation or checkpoint. One rank's word is enough.

        Args:
            stop_requested: Whether to stop.

        Raises:
            AssertionError: It is no bool.
        """
        assert isinstance(stop_requested, bool), f"a bool was expected, not {stop_requested!r}"
        self._stop_requested = stop_requested

    def _length_of_epoch(self) -> int:
        if self._epoch_length is None:
            raise InternalException("training has not begun: the length of an epoch is not known yet")
        return self._epoch_length

    # Who and what the trial is.

    def get_experiment_id(self) -> int:
        """Returns the number of the experiment; 0 off cluster."""
        return 0 if self._core.info is None else self._core.info.trial.experiment_id

    def get_trial_id(self) -> int:
        """Returns the number of the trial; 0 off cluster."""
        return 0 if self._core.info is None else self._core.info.trial.trial_id

    def get_trial_seed(self) -> int:
        """Returns the seed of the trial, equal on all ranks and in all its runs."""
        return self._trial_seed or 0

    # TensorBoard and profiling.

    def get_enable_tensorboard_logging(self) -> bool:
        """Returns whether metrics are written for TensorBoard."""
        return self._tensorboard_logging

    def set_enable_tensorboard_logging(self, enable_tensorboard_logging: bool) -> None:
        """Says whether metrics are written for TensorBoard.

        Raises:
            AssertionError: It is no bool.
        """
        assert isinstance(enable_tensorboard_logging, bool), "a bool was expected"
        self._tensorboard_logging = enable_tensorboard_logging

    def get_tensorboard_path(self) -> Path:
        """Returns the directory in which this process may write TensorBoard events."""
        return self._core.train.get_tensorboard_path()

    def get_tensorboard_writer(self) -> Any:
        """Returns a ``torch.utils.tensorboard.SummaryWriter`` whose events are kept with the trial.

        Raises:
            ImportError: TensorBoard is not installed.
        """
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            directory = str(self.get_tensorboard_path())
            self._writer = SummaryWriter(log_dir=directory)
        return self._writer

    def set_profiler(self, *args: Any, **kwargs: Any) -> None:
        """Profiles training with torch's profiler; it steps by itself, and its traces go to TensorBoard.

        Args:
            args: As for ``torch.profiler.profile``.
            kwargs: As for ``torch.profiler.profile``; ``on_trace_ready`` is set unless given.
        """
        kwargs.setdefault(
            "on_trace_ready", torch.profiler.tensorboard_trace_handler(str(self.get_tensorboard_path()))
        )
        self.profiler = torch.profiler.profile(*args, **kwargs)


def _parameters(optimizer: Any) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _divide_gradients(optimizer: Any, count: int) -> None:
    for parameter in _parameters(optimizer):
        if parameter.grad is not None:
            parameter.grad.div_(count)
