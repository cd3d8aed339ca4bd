"""Reads the optimizers and schedulers that ``configure_optimizers`` of a LightningModule returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from resolute.pytorch.trial.lr_scheduler import StepMode
from resolute.trial_errors import InvalidModelException


@dataclass(frozen=True, slots=True)
class ScheduleOf:
    """A learning-rate scheduler with its interval."""

    scheduler: Any
    mode: StepMode
    frequency: int


def read_optimizers(returned: Any) -> tuple[list[Optimizer], list[ScheduleOf]]:
    """Returns optimizers and schedulers from any form that Lightning accepts.

    Args:
        returned: An optimizer, several, a pair of lists, or mappings with ``optimizer`` and ``lr_scheduler``.

    Raises:
        InvalidModelException: There is no optimizer, or a scheduler waits for a metric or has an optimizer
            that was not returned.
    """
    optimizers: list[Optimizer] = []
    schedulers: list[Any] = []
    if isinstance(returned, (list, tuple)) and len(returned) == 2 and isinstance(returned[0], (list, tuple)):
        optimizers, schedulers = list(returned[0]), list(returned[1])
    else:
        for item in returned if isinstance(returned, (list, tuple)) else [returned]:
            if isinstance(item, Mapping):
                optimizers.append(item["optimizer"])
                if item.get("lr_scheduler") is not None:
                    schedulers.append(item["lr_scheduler"])
            elif isinstance(item, Optimizer):
                optimizers.append(item)
    if not optimizers:
        raise InvalidModelException("configure_optimizers returns no optimizer: LightningAdapter needs one")
    schedules = [_read_scheduler(scheduler) for scheduler in schedulers]
    for schedule in schedules:
        if not any(schedule.scheduler.optimizer is optimizer for optimizer in optimizers):
            raise InvalidModelException(
                "configure_optimizers returns a scheduler without its optimizer: return both"
            )
    return optimizers, schedules


def _read_scheduler(given: Any) -> ScheduleOf:
    described = dict(given) if isinstance(given, Mapping) else {"scheduler": given}
    scheduler = described["scheduler"]
    waits = described.get("reduce_on_plateau") or described.get("monitor") is not None
    if waits or isinstance(scheduler, ReduceLROnPlateau):
        raise InvalidModelException(
            "LightningAdapter steps no scheduler by a metric (reduce_on_plateau, monitor): step it in "
            "on_validation_epoch_end, or use another scheduler"
        )
    by_epoch = described.get("interval", "epoch") == "epoch"
    mode = StepMode.STEP_EVERY_EPOCH if by_epoch else StepMode.STEP_EVERY_BATCH
    return ScheduleOf(scheduler, mode, int(described.get("frequency", 1)))
