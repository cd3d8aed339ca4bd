"""The examples of trials: each runs as it is submitted, and does what it is there to show."""

from __future__ import annotations

import csv
import importlib
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from support.training.trials import Recorder, local_context, newest_checkpoint, same, weights

import resolute
from resolute import InvalidHP
from resolute.cli.main import run
from resolute.pytorch import Batch, Epoch, Trainer
from resolute.pytorch.backends.random_state import seed_all

EXAMPLES = Path(__file__).parents[3] / "examples"
TESTED = (
    "digits_trial/const",
    "digits_trial/adaptive",
    "gan/const",
    "digits_custom/grid",
    "word_model/const",
)


@pytest.fixture(autouse=True)
def torch_as_it_was() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng():
        yield
    torch.set_num_threads(threads)


@pytest.mark.integration
@pytest.mark.sampled(1)
@pytest.mark.parametrize("config", TESTED)
def test_it_runs_in_test_mode_as_it_is_submitted(config: str, capfd: pytest.CaptureFixture[str]) -> None:
    path = EXAMPLES / f"{config}.yaml"
    code = run(["e", "create", str(path), str(path.parent), "--local", "--test-mode"], program="resolute")
    said = capfd.readouterr()
    assert code == 0, said.err
    assert said.out.endswith("the local test passed\n")


def hparams_of(config: str, **changed: Any) -> dict[str, Any]:
    return {**yaml.safe_load((EXAMPLES / config).read_text())["hyperparameters"], **changed}


@contextmanager
def example(name: str) -> Iterator[Any]:
    """The module of an example's trial; its neighbours can be imported while the block lasts."""
    with resolute.import_from_path(str(EXAMPLES / name)):
        yield importlib.import_module("model_def")


def train(
    trial_class: Any, directory: Path, length: Any, *, hparams: dict[str, Any], **options: Any
) -> tuple[Any, Recorder]:
    seed_all(options.pop("seed", 5))
    context, recorder = local_context(directory, hparams=hparams)
    trial = trial_class(context)
    Trainer(trial, context).fit(max_length=length, **{"checkpoint_policy": "none", **options})
    context._core.close()
    return trial, recorder


def test_a_generator_learns_to_draw_digits_and_each_checkpoint_shows_some(tmp_path: Path) -> None:
    hparams = hparams_of("gan/const.yaml")
    with example("gan") as module:
        trial, recorder = train(
            module.GanTrial, tmp_path, Epoch(8), hparams=hparams, step_zero_validation=True
        )
    (_, first), (_, last) = recorder.of("validation")
    assert last["pixel_distance"] < first["pixel_distance"] / 2
    # Neither optimizer moved the other's model.
    assert len(trial.context.optimizers) == 2
    assert all(parameter.grad is None for parameter in trial.critic.parameters())
    sheet = (tmp_path / newest_checkpoint(tmp_path) / "samples.pgm").read_bytes()
    assert sheet.startswith(b"P5 64 64 255\n")
    assert len(sheet) == len(b"P5 64 64 255\n") + 64 * 64


def test_custom_metrics_count_every_image_once_and_hooks_write_into_checkpoints(tmp_path: Path) -> None:
    hparams = hparams_of("digits_custom/grid.yaml", depth=1, hidden=32)
    with example("digits_custom") as module:
        first, recorder = train(module.DigitsTrial, tmp_path / "a", Epoch(3), hparams=hparams)
        resumed, _ = train(
            module.DigitsTrial,
            tmp_path / "a",
            Epoch(3),
            hparams=hparams,
            latest_checkpoint=newest_checkpoint(tmp_path / "a"),
        )
    ((_, metrics),) = recorder.of("validation")
    directory = tmp_path / "a" / newest_checkpoint(tmp_path / "a")
    with (directory / "confusion.csv").open() as file:
        table = [[int(cell) for cell in row] for row in csv.reader(file)]
    seen, hits = sum(map(sum, table)), sum(table[digit][digit] for digit in range(10))
    assert seen == 360
    assert metrics["accuracy"] == pytest.approx(hits / seen)
    assert metrics["worst_digit_accuracy"] <= metrics["accuracy"]
    assert recorder.of("training")[-1][1]["largest_gradient"] > 0
    assert torch.load(directory / "state_dict.pth", weights_only=False)["classes"][9] == "9"
    averages = [trial.averaged.model.state_dict().values() for trial in (first, resumed)]
    assert same(*[list(tensors) for tensors in averages])
    assert not same(list(averages[0])[1:], weights(first))


def test_hyperparameters_that_make_no_sense_together_are_refused(tmp_path: Path) -> None:
    hparams = hparams_of("digits_custom/grid.yaml", depth=3, hidden=256)
    with example("digits_custom") as module, pytest.raises(InvalidHP, match="parameters is too large"):
        module.DigitsTrial(local_context(tmp_path, hparams=hparams)[0])


def small_words(**changed: Any) -> dict[str, Any]:
    return hparams_of("word_model/const.yaml", vocabulary=200, width=16, window=8, **changed)


def test_a_language_model_that_is_stopped_in_mid_text_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    with example("word_model") as module:
        whole, reports = train(
            module.WordTrial, tmp_path / "whole", Batch(40), hparams=small_words(), reporting_period=Batch(10)
        )
        train(module.WordTrial, tmp_path / "parts", Batch(20), hparams=small_words())
        resumed, _ = train(
            module.WordTrial,
            tmp_path / "parts",
            Batch(40),
            hparams=small_words(),
            latest_checkpoint=newest_checkpoint(tmp_path / "parts"),
            seed=99,
        )
    assert same(weights(whole), weights(resumed))
    assert torch.equal(whole.memory.hidden, resumed.memory.hidden)
    losses = [metrics["loss"] for _, metrics in reports.of("training")]
    assert losses[-1] < losses[0] - 0.5


@pytest.mark.parametrize("slots", [1, 2])
def test_each_row_of_a_batch_goes_on_where_it_stopped_on_any_number_of_slots(slots: int) -> None:
    with example("word_model"):
        columns = importlib.import_module("columns")
        windows = columns.Windows(torch.arange(2000), 8)
        sampler = columns.Columns(windows, rows=4, slots=slots)
        loader = resolute.pytorch.DataLoader(windows, batch_sampler=sampler)
        read: set[int] = set()
        for slot in range(slots):
            batches = [words for words, _ in loader.get_data_loader(num_replicas=slots, rank=slot)]
            assert len(batches) == len(sampler) // slots
            for before, after in itertools.pairwise(batches):
                assert torch.equal(before[:, -1] + 1, after[:, 0])
            words = torch.cat(batches, dim=1).flatten().tolist()
            assert read.isdisjoint(words)
            read.update(words)
    assert len(read) >= 0.9 * 2000
