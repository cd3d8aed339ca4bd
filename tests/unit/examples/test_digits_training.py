"""The digits example off cluster: what people copy must resume exactly."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import resolute
from resolute import core
from resolute.testing import simulate_preemption

DIGITS = Path(__file__).parents[3] / "examples" / "digits"
HPARAMS = {"lr": 0.003, "hidden": 16, "dropout": 0.3, "batch_size": 128}


@dataclass(frozen=True)
class Example:
    train: ModuleType
    training: ModuleType
    splits: tuple[Any, Any]

    def new(self, *, seed: int = 7, **hparams: Any) -> Any:
        return self.training.Training({**HPARAMS, **hparams}, *self.splits, seed=seed)


@pytest.fixture(scope="module")
def example() -> Iterator[Example]:
    with resolute.import_from_path(str(DIGITS)):
        train = importlib.import_module("train")
        splits = importlib.import_module("data").load_splits()
        yield Example(train, importlib.import_module("training"), splits)


@pytest.fixture(autouse=True)
def torch_as_it_was() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng():
        yield
    torch.set_num_threads(threads)


def run(example: Example, training: Any, storage: Path, *, epochs: int, **options: Any) -> list[str]:
    """Runs the script's main and returns the checkpoints that it made."""
    before = set(storage.glob("[!.]*"))
    with core.init(checkpoint_storage=str(storage)) as context:
        example.train.main(context, training, options.pop("trial_id", 1), epochs=epochs, **options)
    made = set(storage.glob("[!.]*")) - before
    return [path.name for path in sorted(made, key=lambda path: path.stat().st_mtime_ns)]


def weights(training: Any) -> dict[str, Any]:
    return {name: value.clone() for name, value in training.model.state_dict().items()}


def assert_same(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert left.keys() == right.keys()
    for name, value in left.items():
        assert torch.equal(value, right[name]), name


# In the middle of the first epoch of twelve batches, exactly at its end, and in the middle of the second.
@pytest.mark.parametrize("after_checks", [4, 11, 17])
def test_a_preempted_and_resumed_training_equals_an_uninterrupted_one(
    example: Example, tmp_path: Path, after_checks: int
) -> None:
    straight = example.new()
    run(example, straight, tmp_path / "straight", epochs=3)

    first = example.new()
    with simulate_preemption(after_checks=after_checks) as signal:
        checkpoints = run(example, first, tmp_path / "resumed", epochs=3)
    assert signal.acknowledged
    assert first.steps == after_checks + 1
    torch.rand(13)  # a new process would not have the generator where this one left it
    second = example.new()
    run(example, second, tmp_path / "resumed", epochs=3, checkpoint=checkpoints[-1])

    assert second.steps == straight.steps == 3 * straight.batches_per_epoch
    assert_same(weights(second), weights(straight))
    assert second.validate() == straight.validate()


def test_every_epoch_ends_with_a_checkpoint(example: Example, tmp_path: Path) -> None:
    assert len(run(example, example.new(), tmp_path, epochs=3)) == 3


def test_another_trials_checkpoint_gives_weights_and_no_position(example: Example, tmp_path: Path) -> None:
    donor = example.new(seed=1)
    checkpoint = run(example, donor, tmp_path, epochs=1)[-1]
    heir = example.new(seed=2)
    with core.init(checkpoint_storage=str(tmp_path)) as context:
        example.train.load(context, heir, 2, checkpoint)
    assert heir.steps == 0
    assert_same(weights(heir), weights(donor))


def test_a_loss_that_is_not_finite_refuses_the_hyperparameters(example: Example, tmp_path: Path) -> None:
    hopeless = example.new(lr=1e30)
    with pytest.raises(SystemExit) as exit_:
        run(example, hopeless, tmp_path, epochs=1)
    assert exit_.value.code == 0


def test_four_epochs_are_enough_to_read_most_digits(example: Example, tmp_path: Path) -> None:
    training = example.new(hidden=64, batch_size=64)
    run(example, training, tmp_path, epochs=4)
    assert training.validate()["accuracy"] > 0.9
