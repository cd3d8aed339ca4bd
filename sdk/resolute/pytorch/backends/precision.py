"""Mixed precision: that of torch, and that of apex if it is installed."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from resolute.trial_errors import InvalidExperimentException


class Precision:
    """The precision of a trial.

    Attributes:
        scaler: The gradient scaler; None if losses are not scaled.
        automatic: Whether casts, scaling and updates of the scaler are automatic.
        apex: The module ``apex.amp`` once it is in use.
    """

    def __init__(self) -> None:
        self.scaler: Any = None
        self.automatic = False
        self.apex: Any = None
        self._autocast_options: Mapping[str, Any] = {}
        self._stepped = False
        self._backward_passes = 0

    def use_amp(
        self,
        device: torch.device,
        *,
        models: int,
        autocast_options: Mapping[str, Any] | None = None,
        scaler_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Enables automatic mixed precision.

        Args:
            device: Where this rank trains.
            models: How many were wrapped before.
            autocast_options: Arguments for ``torch.autocast``.
            scaler_options: Arguments for ``torch.amp.GradScaler``; with any, there is one on each device.

        Raises:
            InvalidExperimentException: It comes too late, twice, or beside another way.
        """
        self._check_called_first("experimental.use_amp()", models=models)
        self.automatic = True
        self._autocast_options = autocast_options or {}
        if device.type == "cuda" or scaler_options is not None:
            # bfloat16, which other devices use, has the range of float32 and needs no scaling.
            self.scaler = torch.amp.GradScaler(device.type, **(scaler_options or {}))

    def wrap_scaler(self, scaler: Any, *, models: int) -> Any:
        """Registers a scaler of the trial, which the trial steps and updates.

        Raises:
            InvalidExperimentException: It comes too late, twice, or beside another way.
        """
        self._check_called_first("wrap_scaler()", models=models)
        self.scaler = scaler
        return scaler

    def configure_apex(
        self, models: Any, optimizers: Any, *, enabled: bool, size: int, **options: Any
    ) -> tuple[Any, Any]:
        """Initializes models and optimizers with apex.

        Raises:
            InvalidExperimentException: apex is not installed; or it comes twice, or beside another way.
        """
        if self.apex is not None:
            raise InvalidExperimentException("configure_apex_amp() can be called once only")
        if self.scaler is not None or self.automatic:
            raise InvalidExperimentException(
                "configure_apex_amp() cannot be combined with wrap_scaler() or experimental.use_amp()"
            )
        if not enabled:
            return models, optimizers
        self.apex = _import_apex()
        initialized: tuple[Any, Any] = self.apex.initialize(
            models=models, optimizers=optimizers, enabled=enabled, **options
        )
        return initialized

    def wrap_forward(self, model: nn.Module, device: torch.device) -> None:
        """Wraps the forward pass of a model in autocast, if AMP is enabled.

        Raises:
            InvalidExperimentException: The model is wrapped after apex was configured.
        """
        if self.apex is not None:
            raise InvalidExperimentException("wrap_model() must come before configure_apex_amp()")
        if self.automatic:
            # Inside what torch.compile made, so that the casts are compiled too.
            inner = getattr(model, "_orig_mod", model)
            inner.forward = autocast(inner.forward, device.type, self._autocast_options)

    @property
    def is_unscaled(self) -> bool:
        """Whether losses are not scaled."""
        return self.apex is None and not self.automatic

    def begin_batch(self) -> None:
        """Resets the state of the previous batch."""
        self._backward_passes = 0

    def scaled(self, loss: torch.Tensor, optimizers: Sequence[Any]) -> AbstractContextManager[torch.Tensor]:
        """Returns the scaled loss, for the backward pass.

        Raises:
            InvalidExperimentException: With apex, a batch has a second backward pass.
        """
        self._backward_passes += 1
        if self.apex is not None:
            if self._backward_passes > 1:
                raise InvalidExperimentException("with apex, backward() can be called once in a batch only")
            scaled: AbstractContextManager[torch.Tensor] = self.apex.scale_loss(loss, list(optimizers))
            return scaled
        if self.automatic and self.scaler is not None:
            loss = self.scaler.scale(loss)
        return contextlib.nullcontext(loss)

    def step(self, optimizer: Any, scaler: Any, *, before: Callable[[], None] | None) -> None:
        """Steps an optimizer, through the scaler if there is one.

        Args:
            optimizer: The optimizer.
            scaler: The trial's own scaler; None for the automatic one.
            before: Called with the gradients in their true size; None for nothing to do.
        """
        scaler = scaler if scaler is not None else self.scaler if self.automatic else None
        if before is not None:
            if scaler is not None:
                scaler.unscale_(optimizer)
            before()
        if scaler is None:
            optimizer.step()
            return
        scaler.step(optimizer)
        self._stepped = self._stepped or (self.automatic and scaler is self.scaler)

    def end_batch(self) -> None:
        """Updates the automatic scaler, once for all optimizers of the batch."""
        if self._stepped:
            self._stepped = False
            self.scaler.update()

    def _check_called_first(self, call: str, *, models: int) -> None:
        if models:
            raise InvalidExperimentException(f"{call} must come before the first wrap_model()")
        if self.apex is not None:
            raise InvalidExperimentException(f"{call} cannot be combined with configure_apex_amp()")
        if self.scaler is not None or self.automatic:
            raise InvalidExperimentException(
                f"{call}: a scaler or experimental.use_amp() was there already, and there can be one only"
            )


def _import_apex() -> Any:
    try:
        from apex import amp  # type: ignore[import-not-found, unused-ignore]
    except ImportError as failure:
        raise InvalidExperimentException(
            "configure_apex_amp() needs NVIDIA's apex, which is not installed; torch has mixed precision of "
            "its "
            "own: call context.experimental.use_amp() before wrap_model() instead"
        ) from failure
    return amp


def autocast(forward: Callable[..., Any], device_type: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    """Returns a forward pass under autocast, for a device type and with options."""
    dtype = torch.float16 if device_type == "cuda" else torch.bfloat16
    chosen = {"dtype": dtype, **options}

    @functools.wraps(forward)
    def cast_forward(*args: Any, **kwargs: Any) -> Any:
        with torch.autocast(device_type, **chosen):
            return forward(*args, **kwargs)

    return cast_forward
