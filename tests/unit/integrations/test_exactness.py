"""What trainings of other libraries keep over a pause after any batch: the table of the docs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.suite.sampling import Sample
from support.training import keras_models
from support.training.exactness import PROGRAMS, WITH_DEEPSPEED, table
from support.training.integrations import (
    BATCHES,
    EPOCHS,
    Program,
    train_by_accelerate,
    train_by_lightning,
    train_by_transformers,
)
from support.training.pauses import Run, Training, train_in_parts
from support.training.trials import equal
from torch.utils.data import default_collate


def train_by_keras(program: Program | None, run: Run) -> tuple[Any, list[Any]]:
    """By ``fit``, of arrays or of a loader; the records are what the noise in the weights says of them."""
    data: dict[str, Any] = {"shuffle": True}
    if program is not None:
        loader = program.loader(process=run.process)
        loader.collate_fn = lambda records: default_collate(records)[:2]
        data = {"loader": loader, "accumulation": program.accumulation if program.accumulation > 1 else None}
    with run.begun() as trained:
        model, recorder = keras_models.run(
            run.directory, run.checkpoint, epochs=EPOCHS, after_batch=trained, **data
        )
    return keras_models.weights(model), recorder.reports


TRAININGS: dict[str, Any] = {
    "Lightning": train_by_lightning,
    "Hugging Face `Trainer`": train_by_transformers,
    "Accelerate": train_by_accelerate,
    "Keras": train_by_keras,
}
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept:DeprecationWarning"),
]


CELLS = [(row, name) for row in PROGRAMS for name in TRAININGS]


def test_the_page_has_a_cell_for_each_row_and_library() -> None:
    assert [cell for cell in table() if cell[1] != WITH_DEEPSPEED] == CELLS
    assert [row for row, name in table() if name == WITH_DEEPSPEED] == list(PROGRAMS)
    assert set(table().values()) <= {"exact", "no"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("row", "name"), CELLS)
def test_the_page_says_what_a_pause_keeps(row: str, name: str, tmp_path: Path, sample: Sample) -> None:
    exact = table()[row, name] == "exact"
    for number, program in enumerate(PROGRAMS[row]):
        batches = range(1, EPOCHS * BATCHES - program.accumulation + 1)
        pauses = sample.of(batches, 2) if exact else [2 if name == "Keras" else BATCHES + 2]
        training: Training = partial(TRAININGS[name], program)
        whole = training(Run(tmp_path / f"whole-{number}"))
        for pause in pauses:
            parts = train_in_parts(training, tmp_path / f"{number}-{pause}", [pause])
            assert equal(parts, whole) == exact, (program, pause)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("pause", range(1, EPOCHS * keras_models.BATCHES + 1))
def test_keras_stops_after_the_epoch_and_goes_on_exactly(tmp_path: Path, pause: int) -> None:
    training: Training = partial(train_by_keras, None)
    whole = training(Run(tmp_path / "whole"))
    assert equal(train_in_parts(training, tmp_path / "parts", [pause]), whole)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sampler", ["torch", "buckets"])
def test_keras_keeps_the_order_of_further_samplers(tmp_path: Path, sampler: str, sample: Sample) -> None:
    training: Training = partial(train_by_keras, Program(sampler))
    whole = training(Run(tmp_path / "whole"))
    (pause,) = sample.of(range(1, BATCHES), 1)[:1]
    assert equal(train_in_parts(training, tmp_path / "parts", [pause]), whole)


def test_transformers_warns_of_a_sampler_and_a_data_set_by_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train_by_transformers(Program("weighted", noise="own_python"), Run(tmp_path / "warned"))
    assert "if the order of WeightedRandomSampler differs from epoch to epoch" in caplog.text
    assert "_Records has a generator of random numbers" in caplog.text
    caplog.clear()
    train_by_transformers(Program(), Run(tmp_path / "not"))
    assert "if the order of" not in caplog.text
