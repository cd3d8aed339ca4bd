"""Programs put together at random: paused anywhere they end as if they had not been, or are refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.sampling import Sample
from support.training.generated import Generated, Program, programs
from support.training.trials import equal, local_context, newest_checkpoint, state_of

from resolute.pytorch import Batch, Trainer
from resolute.testing import simulate_preemption
from resolute.trial_errors import InvalidExperimentException

BATCHES = 19
COUNT = 200


def train(
    program: Program, directory: Path, *, checkpoint: str | None = None, pause: int = 0, process: int = 0
) -> tuple[dict[str, Any], list[list[int]]]:
    """Trains to the end, or until a pause; what a process starts with must not matter once it resumes."""
    random.seed(process)
    np.random.seed(process)
    torch.manual_seed(process)
    trial_class = type("Trial", (Generated,), {"program": program, "process": process})
    frequency = 2 if program.accumulation == "frequency" else 1
    with simulate_preemption() as signal:
        signal._after_checks = 10**9
        context, _ = local_context(directory, aggregation_frequency=frequency)
        trial = trial_class(context)
        trial.after_batch = lambda batch: signal.request() if batch == pause else None
        Trainer(trial, context).fit(
            max_length=Batch(BATCHES),
            latest_checkpoint=checkpoint,
            validation_period=Batch(4),
            checkpoint_policy="none",
        )
        assert signal.acknowledged == bool(pause)
    context._core.close()
    return state_of(trial), trial.dealt


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
def test_programs_that_are_paused_end_as_if_they_had_not_been(tmp_path: Path, sample: Sample) -> None:
    made = programs(sample.number, COUNT)
    for program in sample.of(made, 20):
        directory = tmp_path / str(program.seed)
        if program.refused:
            with pytest.raises(InvalidExperimentException, match="wrap"):
                train(program, directory / "refused")
            continue
        whole, dealt = train(program, directory / "whole")
        draw = random.Random(program.seed)
        pauses = sorted(draw.sample(range(1, BATCHES), draw.randint(1, 3)))
        checkpoint, parts = None, []
        for process, pause in enumerate([*pauses, 0]):
            state, part = train(
                program, directory / "parts", checkpoint=checkpoint, pause=pause, process=process
            )
            parts += part
            checkpoint = newest_checkpoint(directory / "parts")
        assert parts == dealt, (sample.number, program, pauses)
        assert equal(state, whole), (sample.number, program, pauses)
