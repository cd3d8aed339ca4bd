"""Learning-rate schedulers and the times of their steps."""

from __future__ import annotations

import enum
from typing import Any

from torch.optim import lr_scheduler as torch_schedulers

from resolute.trial_errors import InvalidExperimentException


class StepMode(enum.Enum):
    """The time at which a scheduler steps."""

    STEP_EVERY_EPOCH = 1
    """After the last optimizer step of every epoch."""
    STEP_EVERY_BATCH = 2
    """After every batch; with aggregated gradients for all of them together, when the optimizer steps."""
    MANUAL_STEP = 3
    """When the trial calls ``step()``."""
    STEP_EVERY_OPTIMIZER_STEP = 4
    """After every step of the optimizer."""


_StepMode = StepMode
"""The same, where the class below has a member of this name."""


class LRScheduler:
    """A torch scheduler with the time of its steps.

    Args:
        scheduler: The scheduler.
        step_mode: The time of its steps.
        frequency: Number of epochs or batches between two steps.

    Raises:
        TypeError: ``step_mode`` is not an ``LRScheduler.StepMode``.
        ValueError: ``frequency`` is less than 1.
        InvalidExperimentException: A ``ReduceLROnPlateau``, which needs a metric, is not stepped manually.

    Examples:
        >>> import torch
        >>> from resolute import pytorch
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        >>> halving = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
        >>> scheduler = pytorch.LRScheduler(halving, pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH)
        >>> scheduler.get_last_lr()
        [0.1]
    """

    StepMode = StepMode

    def __init__(self, scheduler: Any, step_mode: _StepMode, frequency: int = 1) -> None:
        if not isinstance(step_mode, _StepMode):
            raise TypeError(f"step_mode is {step_mode!r}; an LRScheduler.StepMode was expected")
        if frequency < 1:
            raise ValueError(f"frequency is {frequency}; it must be at least 1")
        if (
            isinstance(scheduler, torch_schedulers.ReduceLROnPlateau)
            and step_mode is not _StepMode.MANUAL_STEP
        ):
            raise InvalidExperimentException(
                "ReduceLROnPlateau needs a metric to step: wrap it with LRScheduler.StepMode.MANUAL_STEP and "
                "call its step(metric) yourself, such as in a callback's on_validation_end"
            )
        self._scheduler = scheduler
        self._step_mode = step_mode
        self._frequency = frequency

    @property
    def scheduler(self) -> Any:
        """The scheduler of torch."""
        return self._scheduler

    def step(self, *args: Any, **kwargs: Any) -> None:
        """Steps the scheduler."""
        self._scheduler.step(*args, **kwargs)

    def get_last_lr(self) -> list[float]:
        """Returns the learning rate of each group of parameters."""
        rates: list[float] = self._scheduler.get_last_lr()
        return rates

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the scheduler."""
        state: dict[str, Any] = self._scheduler.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores the state of the scheduler."""
        self._scheduler.load_state_dict(state_dict)

    def steps_after(self, batch_idx: int, *, epoch_length: int, aggregation_frequency: int) -> int:
        """Returns how many steps the platform makes after a batch.

        Args:
            batch_idx: The batch, from 0.
            epoch_length: Batches of an epoch.
            aggregation_frequency: Batches to a step of the optimizer.
        """
        done = batch_idx + 1
        if self._step_mode is _StepMode.MANUAL_STEP or done % aggregation_frequency:
            return 0
        if self._step_mode is _StepMode.STEP_EVERY_OPTIMIZER_STEP:
            return int(done % self._frequency == 0)
        if self._step_mode is _StepMode.STEP_EVERY_BATCH:
            return done // self._frequency - (done - aggregation_frequency) // self._frequency
        # Every epoch that ends before the next step of the optimizer.
        first = batch_idx // epoch_length
        last = (batch_idx + aggregation_frequency) // epoch_length
        return last // self._frequency - first // self._frequency
