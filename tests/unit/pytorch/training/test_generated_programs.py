"""Programs put together at random: paused anywhere they end as if they had not been, or are refused."""

from __future__ import annotations

import dataclasses
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.suite.sampling import Sample
from support.training.generated import FURTHER, LOADING, Generated, Program, programs
from support.training.pauses import Run, train_in_parts
from support.training.trials import equal, local_context, state_of

from resolute.pytorch import Batch, Trainer
from resolute.trial_errors import InvalidExperimentException

BATCHES = 19
COUNT = 200
PARTS = 20
"""Of which each is a test, so that none takes minutes."""
pytestmark = [
    pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step"),
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),  # torchdata asks for it
]


def train(program: Program, run: Run) -> tuple[dict[str, Any], list[list[int]]]:
    """Trains to the end, or until a pause."""
    trial_class = type("Trial", (Generated,), {"program": program, "process": run.process})
    frequency = 2 if program.accumulation == "frequency" else 1
    with run.begun() as trained:
        context, _ = local_context(run.directory, aggregation_frequency=frequency)
        trial = trial_class(context)
        trial.after_batch = trained
        Trainer(trial, context).fit(
            max_length=Batch(BATCHES),
            latest_checkpoint=run.checkpoint,
            validation_period=Batch(4),
            checkpoint_policy="none",
        )
    context._core.close()
    return state_of(trial), trial.dealt


@pytest.mark.parametrize("part", range(PARTS))
def test_programs_that_are_paused_end_as_if_they_had_not_been(
    tmp_path: Path, sample: Sample, part: int
) -> None:
    made = programs(sample.number, COUNT)[part::PARTS]
    for program in sample.of(made, 1):
        check(program, tmp_path / str(program.seed))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "way", [*({"loading": kind} for kind in LOADING), *({"further": kind} for kind in FURTHER)], ids=str
)
def test_each_way_of_loading_data_is_exact_or_refused(
    tmp_path: Path, sample: Sample, way: dict[str, Any]
) -> None:
    plain = dataclasses.replace(
        programs(sample.number, 1)[0], workers=0, forgotten="", loading="", further=""
    )
    check(dataclasses.replace(plain, **way), tmp_path)


def check(program: Program, directory: Path) -> None:
    """Trains it whole and in parts, or sees that it is refused."""
    if program.refused:
        with pytest.raises(InvalidExperimentException, match=r"wrap|begun to go through data"):
            train(program, Run(directory / "refused"))
        return
    whole, dealt = train(program, Run(directory / "whole"))
    draw = random.Random(program.seed)
    pauses = sorted(draw.sample(range(1, BATCHES), draw.randint(1, 3)))
    state, parts = train_in_parts(partial(train, program), directory / "parts", pauses)
    assert parts == dealt, (program, pauses)
    assert equal(state, whole), (program, pauses)
