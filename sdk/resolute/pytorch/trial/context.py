"""The context of a trial in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn

from resolute import core
from resolute.pytorch.backends.exchange_options import check_ddp_options, check_horovod_options
from resolute.pytorch.backends.gradient_exchange import Backend, choose_backend
from resolute.pytorch.backends.precision import Precision, autocast
from resolute.pytorch.trial.base_context import TrialContext
from resolute.pytorch.trial.experimental_context import PyTorchExperimentalContext
from resolute.pytorch.trial.lr_scheduler import LRScheduler, StepMode
from resolute.runtime.experiment_config import ExperimentConfig
from resolute.runtime.sampling import sample
from resolute.trial_errors import InvalidExperimentException


class PyTorchTrialContext(TrialContext):
    """The platform's features for a ``PyTorchTrial``. Get it from ``pytorch.init()``.

    Attributes:
        experimental: Features that may still change.
        lr_schedulers: The wrapped schedulers.
        optimizers: The wrapped optimizers.

    Examples:
        >>> from resolute import pytorch
        >>> with pytorch.init(hparams={"lr": 0.1, "global_batch_size": 32}) as context:
        ...     print(context.get_hparam("lr"), context.get_per_slot_batch_size())
        0.1 32
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
        super().__init__(
            core_context,
            trial_seed=trial_seed,
            hparams=hparams,
            slots=slots_per_trial,
            exp_conf=exp_conf,
            steps_completed=steps_completed,
            debug_enabled=debug_enabled,
            tensorboard=enable_tensorboard_logging,
        )
        self._aggregation_frequency = aggregation_frequency
        self._average_aggregated_gradients = True
        self._compress_gradients = False
        self._precision = Precision()
        self._backend = backend or choose_backend(core_context.distributed)
        self.experimental = PyTorchExperimentalContext(self, self._precision)
        self.optimizers: list[Any] = []
        self.lr_schedulers: list[LRScheduler] = []

    # What is wrapped.

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> PyTorchTrialContext:
        """Creates a context off cluster, with hyperparameters sampled from those of a config.

        Args:
            config: An experiment config. Equal seeds in its ``reproducibility`` give equal draws.

        Raises:
            InvalidConfigError: A hyperparameter lacks what its type needs.
            InvalidExperimentException: The batch has no record.
        """
        return cls._from_sampled_hparams(config, core._dummy_init())

    @classmethod
    def _from_sampled_hparams(
        cls, config: Mapping[str, Any], core_context: core.Context
    ) -> PyTorchTrialContext:
        conf = ExperimentConfig(config)
        return cls(
            core_context,
            trial_seed=conf.experiment_seed(),
            hparams=sample(conf.get("hyperparameters") or {}, seed=conf.experiment_seed()),
            slots_per_trial=1,
            num_gpus=torch.cuda.device_count(),
            exp_conf=conf,
            aggregation_frequency=int(conf.get_optimizations_config().get("aggregation_frequency", 1)),
            steps_completed=0,
            managed_training=False,
            debug_enabled=conf.debug_enabled(),
        )

    def wrap_model(self, model: nn.Module, *, ddp_options: Mapping[str, Any] | None = None) -> Any:
        """Registers a model, also a compiled one, and moves it to the device.

        Args:
            model: The model.
            ddp_options: Arguments for torch's ``DistributedDataParallel``, such as
                ``{"find_unused_parameters": True}``; they have an effect where several ranks exchange
                gradients by it.

        Returns:
            What to call in its place.

        Raises:
            InvalidExperimentException: ``configure_apex_amp`` was called before, the model is sharded by
                torch's FSDP, or torch does not take one of the options.
        """
        _check_not_sharded(model)
        check_ddp_options(ddp_options or {}, aggregation_frequency=self._aggregation_frequency)
        self._precision.wrap_forward(model, self.device)
        wrapped = self._backend.wrap_model(model.to(self.device), self.device, ddp_options or {})
        self.models.append(wrapped)
        return wrapped

    def autocast_forward_pass(
        self, to_wrap: nn.Module, *, autocast_options: Mapping[str, Any] | None = None
    ) -> nn.Module:
        """Wraps the forward pass of one model in autocast.

        ``experimental.use_amp`` does so for all models, and scales losses.

        Args:
            to_wrap: The model, wrapped or not.
            autocast_options: Arguments for ``torch.autocast``, such as ``{"dtype": torch.bfloat16}``.

        Returns:
            The same model.
        """
        to_wrap.forward = autocast(to_wrap.forward, self.device.type, autocast_options or {})
        return to_wrap

    def wrap_optimizer(
        self,
        optimizer: Any,
        backward_passes_per_step: int = 1,
        fp16_compression: bool | None = None,
        average_aggregated_gradients: bool | None = None,
        *,
        horovod_options: Mapping[str, Any] | None = None,
    ) -> Any:
        """Registers an optimizer: its state is saved, its gradients are exchanged.

        Args:
            optimizer: The optimizer, of parameters of wrapped models.
            backward_passes_per_step: How often ``backward`` is called for each batch with gradients of this
                optimizer. For Horovod.
            fp16_compression: Whether gradients travel in half precision; default what the config of a trial
                that runs by its class says, else False. For Horovod.
            average_aggregated_gradients: Whether aggregated gradients are divided by their number; default
                likewise what the config says, else True.
            horovod_options: Arguments for Horovod's ``DistributedOptimizer``, such as ``{"num_groups": 2}``;
                they have an effect where several ranks exchange gradients by it.

        Returns:
            What to step in its place.

        Raises:
            InvalidExperimentException: ``backward_passes_per_step`` is less than 1, or one of the options is
                given in another way.
        """
        check_horovod_options(horovod_options or {})
        if backward_passes_per_step < 1:
            raise InvalidExperimentException(
                f"backward_passes_per_step is {backward_passes_per_step}; it must be at least 1"
            )
        if average_aggregated_gradients is not None:
            self._average_aggregated_gradients = average_aggregated_gradients
        compression = None
        if self._compress_gradients if fp16_compression is None else fp16_compression:
            compression = getattr(getattr(self._backend, "_hvd", None), "Compression", None)
            compression = getattr(compression, "fp16", None)
        wrapped = self._backend.wrap_optimizer(
            optimizer,
            self.models,
            passes=backward_passes_per_step * self._aggregation_frequency,
            compression=compression,
            options=horovod_options or {},
        )
        self.optimizers.append(wrapped)
        return wrapped

    def wrap_lr_scheduler(self, lr_scheduler: Any, step_mode: StepMode, frequency: int = 1) -> Any:
        """Registers a learning-rate scheduler: its state is saved.

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
        """Registers a ``GradScaler``. The trial scales losses, and steps and updates the scaler.

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
        """Initializes models and optimizers with NVIDIA's apex, by the arguments of its ``initialize``.

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
        if self._precision.is_unscaled:
            loss.backward(gradient, retain_graph, create_graph)  # type: ignore[no-untyped-call]
            return
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
        """Steps an optimizer, except in a batch that only accumulates gradients.

        Args:
            optimizer: A wrapped optimizer.
            clip_grads: Called with the parameters before the step, to change their gradients in place.
            auto_zero_grads: Whether gradients are reset after the step.
            scaler: The trial's own ``GradScaler``, if it has one.

        Raises:
            InvalidExperimentException: The optimizer was not wrapped, or gradients are aggregated and
                ``auto_zero_grads`` is off.
        """
        if self._precision.apex is None and not any(optimizer is known for known in self.optimizers):
            raise InvalidExperimentException(
                f"step_optimizer() was called with a {type(optimizer).__name__} that was not wrapped: step "
                "what context.wrap_optimizer(optimizer) returns"
            )
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
                clip_grads(parameters_of(optimizer))

        with self._backend.optimizer_step(optimizer):
            self._precision.step(optimizer, scaler, before=prepare if divide or clip_grads else None)
        if auto_zero_grads:
            optimizer.zero_grad()

    def _is_optimizer_step(self) -> bool:
        return (self.current_train_batch() + 1) % self._aggregation_frequency == 0


def parameters_of(optimizer: Any) -> list[torch.Tensor]:
    """Returns the parameters of all groups of an optimizer."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _check_not_sharded(model: nn.Module) -> None:
    names = {base.__name__ for base in type(model).__mro__}
    if names & {"FullyShardedDataParallel", "FSDPModule"}:
        raise InvalidExperimentException(
            "wrap_model() was given a model that torch's FSDP has sharded: in a PyTorchTrial every rank has "
            "the whole model. Train it by the Core API with resolute.pytorch.sharded, by Lightning or "
            "Accelerate, or by a DeepSpeedTrial with ZeRO"
        )


def _divide_gradients(optimizer: Any, count: int) -> None:
    for parameter in parameters_of(optimizer):
        if parameter.grad is not None:
            parameter.grad.div_(count)
