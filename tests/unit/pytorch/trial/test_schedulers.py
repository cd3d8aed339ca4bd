from __future__ import annotations

from typing import Any

import pytest
import torch

from resolute.pytorch import LRScheduler
from resolute.trial_errors import InvalidExperimentException

Mode = LRScheduler.StepMode


def scheduler() -> torch.optim.lr_scheduler.StepLR:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    return torch.optim.lr_scheduler.StepLR(optimizer, 1)


@pytest.mark.parametrize(
    ("mode", "frequency", "aggregation", "steps"),
    [
        (Mode.STEP_EVERY_BATCH, 1, 1, [1, 1, 1, 1, 1, 1]),
        (Mode.STEP_EVERY_BATCH, 2, 1, [0, 1, 0, 1, 0, 1]),
        (Mode.STEP_EVERY_BATCH, 1, 3, [0, 0, 3, 0, 0, 3]),
        (Mode.STEP_EVERY_BATCH, 2, 3, [0, 0, 1, 0, 0, 2]),
        (Mode.STEP_EVERY_OPTIMIZER_STEP, 1, 2, [0, 1, 0, 1, 0, 1]),
        (Mode.STEP_EVERY_OPTIMIZER_STEP, 4, 2, [0, 0, 0, 1, 0, 0]),
        (Mode.STEP_EVERY_EPOCH, 1, 1, [0, 1, 0, 1, 0, 1]),
        (Mode.STEP_EVERY_EPOCH, 2, 1, [0, 0, 0, 1, 0, 0]),
        (Mode.STEP_EVERY_EPOCH, 1, 3, [0, 0, 1, 0, 0, 2]),
        (Mode.MANUAL_STEP, 1, 1, [0, 0, 0, 0, 0, 0]),
    ],
)
def test_schedulers_step_when_their_mode_says(
    mode: Any, frequency: int, aggregation: int, steps: list[int]
) -> None:
    wrapped = LRScheduler(scheduler(), mode, frequency)
    found = [wrapped.steps_after(i, epoch_length=2, aggregation_frequency=aggregation) for i in range(6)]
    assert found == steps


def test_a_scheduler_passes_state_on() -> None:
    inner = scheduler()
    wrapped = LRScheduler(inner, Mode.MANUAL_STEP)
    inner.optimizer.step()
    wrapped.step()
    assert wrapped.get_last_lr() == [pytest.approx(0.1)]
    other = LRScheduler(scheduler(), Mode.MANUAL_STEP)
    other.load_state_dict(wrapped.state_dict())
    assert other.get_last_lr() == wrapped.get_last_lr()


def test_mistakes_are_refused() -> None:
    with pytest.raises(TypeError, match=r"LRScheduler\.StepMode"):
        LRScheduler(scheduler(), 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 1"):
        LRScheduler(scheduler(), Mode.MANUAL_STEP, 0)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(scheduler().optimizer)
    with pytest.raises(InvalidExperimentException, match="MANUAL_STEP"):
        LRScheduler(plateau, Mode.STEP_EVERY_EPOCH)
    LRScheduler(plateau, Mode.MANUAL_STEP)
