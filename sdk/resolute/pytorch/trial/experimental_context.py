"""The part of a trial's context that may still change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from resolute.pytorch.backends.precision import Precision
from resolute.pytorch.metrics.reducers import MetricReducer
from resolute.pytorch.trial.base_context import TrialContext


class PyTorchExperimentalContext:
    """Features that may still change. Get them as ``PyTorchTrialContext.experimental``.

    Args:
        parent: The context that it belongs to.
        precision: The precision in which that context trains.

    Examples:
        >>> from resolute import pytorch
        >>> with pytorch.init() as context:
        ...     context.experimental.disable_dataset_reproducibility_checks()
    """

    def __init__(self, parent: TrialContext, precision: Precision) -> None:
        self._parent = parent
        self._precision = precision
        self.reproducibility_checks = True
        self.auto_to_device = True

    def use_amp(
        self,
        *,
        autocast_options: Mapping[str, Any] | None = None,
        scaler_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Enables automatic mixed precision for all models, with loss scaling where needed.

        Args:
            autocast_options: Arguments for ``torch.autocast``, such as ``{"dtype": torch.bfloat16}``; default
                float16 on GPUs of CUDA, bfloat16 elsewhere.
            scaler_options: Arguments for ``torch.amp.GradScaler``, such as ``{"init_scale": 1024.0}`` or
                ``{"enabled": False}``; default a scaler with torch's own on GPUs of CUDA, none elsewhere.

        Raises:
            InvalidExperimentException: A model was wrapped before, or a scaler or apex is in use.
        """
        self._precision.use_amp(
            self._parent.device,
            models=len(self._parent.models),
            autocast_options=autocast_options,
            scaler_options=scaler_options,
        )

    def disable_dataset_reproducibility_checks(self) -> None:
        """Allows loaders of torch. The trial must then shard, shuffle and skip data itself."""
        self.reproducibility_checks = False

    def disable_auto_to_device(self) -> None:
        """Stops the platform from moving batches to the device. The trial must move them."""
        self.auto_to_device = False

    def wrap_reducer(
        self,
        reducer: Callable[[list[Any]], Any] | MetricReducer,
        name: str | None = None,
        for_training: bool = True,
        for_validation: bool = True,
    ) -> Any:
        """Older place of ``PyTorchTrialContext.wrap_reducer``."""
        return self._parent.wrap_reducer(reducer, name, for_training, for_validation)

    def reset_reducers(self) -> None:
        """Older place of ``PyTorchTrialContext.reset_reducers``."""
        self._parent.reset_reducers()

    def reduce_metrics(self, for_training: bool) -> dict[str, Any]:
        """Older place of ``PyTorchTrialContext.reduce_metrics``."""
        return self._parent.reduce_metrics(for_training)
