"""What a trial may leave to the platform: gradients and steps, and torch's own data loaders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.training.trials import RECORDS, LineTrial, Noisy, local_context, same, weights
from torch.utils import data as torch_data

from resolute import pytorch
from resolute.pytorch import Batch, Trainer
from resolute.pytorch.data.torch_loader import from_torch


def trained(trial_class: Any, directory: Path, *, aggregation: int = 1) -> Any:
    np.random.seed(5)
    torch.manual_seed(5)
    context, _ = local_context(directory, aggregation_frequency=aggregation)
    trial = trial_class(context)
    Trainer(trial, context).fit(max_length=Batch(12), checkpoint_policy="none")
    return trial


class Left(LineTrial):
    """Returns its loss, and takes no step."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        x, y = batch
        loss = ((self.model(x) - y) ** 2).mean()
        self.absolute.update(loss.item())
        return {"loss": loss}


class LeftAsTensor(Left):
    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        return super().train_batch(batch, epoch_idx, batch_idx)["loss"]


@pytest.mark.parametrize("aggregation", [1, 3])
@pytest.mark.parametrize("left", [Left, LeftAsTensor])
def test_steps_that_are_left_out_are_those_of_the_calls(tmp_path: Path, left: Any, aggregation: int) -> None:
    called = trained(LineTrial, tmp_path / "called", aggregation=aggregation)
    automatic = trained(left, tmp_path / "left", aggregation=aggregation)
    assert same(weights(called), weights(automatic))


NO_STEP = pytest.mark.filterwarnings("ignore:Detected call of .lr_scheduler.step")


class ByHand(LineTrial):
    """Computes gradients and steps without the context, and leaves none behind."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        x, y = batch
        loss = ((self.model(x) - y) ** 2).mean()
        self.absolute.update(loss.item())
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return {"loss": loss}


class Skipping(ByHand):
    """Has gradients of which its own scaler takes no step."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        x, y = batch
        loss = (self.model(x) - y).sum()
        self.absolute.update(loss.item())
        loss.backward(retain_graph=True)
        self.optimizer.zero_grad()
        return {"loss": loss}


@NO_STEP
def test_a_step_that_the_trial_takes_by_itself_is_not_taken_twice(tmp_path: Path) -> None:
    assert same(weights(trained(LineTrial, tmp_path / "a")), weights(trained(ByHand, tmp_path / "b")))
    before = [one.clone() for one in LineTrial(local_context(tmp_path / "c")[0]).model.parameters()]
    after = list(trained(Skipping, tmp_path / "d").model.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


class EveryFourth(LineTrial):
    """Collects losses, and takes a step for four of them by a function of its module."""

    collected: Any = 0.0

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        x, y = batch
        loss = ((self.model(x) - y) ** 2).mean()
        self.absolute.update(loss.item())
        self.collected = self.collected + loss if batch_idx % 4 else loss
        if batch_idx % 4 == 3:
            self.take()
        return {"loss": loss}

    def take(self) -> None:
        take_step(self.collected, self.optimizer)


def take_step(loss: Any, optimizer: Any) -> None:
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


@NO_STEP
def test_steps_that_begin_after_the_first_batch_are_the_trials_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    np.random.seed(5)
    torch.manual_seed(5)
    trial = EveryFourth(local_context(tmp_path / "a")[0])
    taken: list[int] = []
    trial.optimizer.register_step_post_hook(lambda *_: taken.append(1))
    Trainer(trial, trial.context).fit(max_length=Batch(12), checkpoint_policy="none")
    assert len(taken) == 3
    assert caplog.text.count("so steps are left to it") == 1


class Collector:
    """Takes a step for four batches, as an object that a trial holds."""

    def __init__(self, loss_of: Any, optimizer: Any) -> None:
        self.loss_of, self.optimizer = loss_of, optimizer
        self.batches: list[Any] = []

    def add(self, batch: Any) -> None:
        self.batches.append(batch)
        if len(self.batches) == 4:
            take_step(sum(map(self.loss_of, self.batches)), self.optimizer)
            self.batches.clear()


class Collecting(LineTrial):
    """Leaves its steps to what its source does not name."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        if not hasattr(self, "collector"):
            self.collector = Collector(self.loss_of, self.optimizer)
        self.collector.add(batch)
        loss = self.loss_of(batch)
        self.absolute.update(loss.item())
        return {"loss": loss}

    def loss_of(self, batch: Any) -> torch.Tensor:
        x, y = batch
        return torch.as_tensor(((self.model(x) - y) ** 2).mean())


@NO_STEP
def test_steps_of_both_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="computed gradients itself, and steps are automatic"):
        trained(Collecting, tmp_path)


class Penalized(Left):
    """Adds a penalty on gradients to some of its losses, and leaves its steps to the platform."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        metrics: dict[str, Any] = super().train_batch(batch, epoch_idx, batch_idx)
        if batch_idx % 3 == 2:
            gradients = torch.autograd.grad(metrics["loss"], list(self.model.parameters()), create_graph=True)
            metrics["loss"] = metrics["loss"] + 0.1 * sum(gradient.pow(2).sum() for gradient in gradients)
        return metrics


def test_gradients_for_a_penalty_are_no_step(tmp_path: Path) -> None:
    trained(Penalized, tmp_path)


class Constant(LineTrial):
    """Trains nothing, and says so by a number."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        self.absolute.update(0.0)
        return {"loss": 1.0}


@NO_STEP
def test_a_number_is_no_loss_to_learn_from(tmp_path: Path) -> None:
    trained(Constant, tmp_path)


class Forgetful(Left):
    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        metrics: Mapping[str, Any] = super().train_batch(batch, epoch_idx, batch_idx)
        return metrics if batch_idx < 3 else {"loss": metrics["loss"].item()}


def test_a_batch_without_a_loss_is_refused_where_others_had_one(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="returned no loss with gradients, and steps are automatic"):
        trained(Forgetful, tmp_path)


SHUFFLED = {"batch_size": 4, "shuffle": True}
NUMBERS: Any = list(range(8))


@pytest.mark.parametrize(
    "options",
    [
        SHUFFLED,
        {"batch_size": 3, "drop_last": True},
        {**SHUFFLED, "num_workers": 1},
        {"batch_size": 4, "sampler": torch_data.SequentialSampler(range(20))},
        {"batch_sampler": torch_data.BatchSampler(torch_data.SequentialSampler(range(RECORDS)), 5, False)},
        {
            **SHUFFLED,
            "collate_fn": lambda records: [torch.stack(part) + 1 for part in zip(*records, strict=True)],
        },
    ],
    ids=" ".join,
)
def test_a_loader_of_torch_deals_as_ours_with_the_same_arguments(tmp_path: Path, options: Any) -> None:
    class Torch(LineTrial):
        def build_training_data_loader(self) -> Any:
            return torch_data.DataLoader(Noisy(), **options)

        def build_validation_data_loader(self) -> Any:
            return torch_data.DataLoader(Noisy(), batch_size=8)

    class Ours(Torch):
        def build_training_data_loader(self) -> Any:
            return pytorch.DataLoader(Noisy(), **options)

    assert same(weights(trained(Ours, tmp_path / "ours")), weights(trained(Torch, tmp_path / "torch")))


def test_a_shuffle_with_a_generator_is_a_shuffle_by_its_seed() -> None:
    loader: Any = torch_data.DataLoader(NUMBERS, shuffle=True, generator=torch.Generator().manual_seed(3))
    taken = from_torch(loader)
    assert isinstance(taken, pytorch.DataLoader)
    assert taken.shuffle
    assert taken.generator is loader.generator


class Stream(torch_data.IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(3))


@pytest.mark.parametrize(
    "loader",
    [
        torch_data.DataLoader(Stream(), batch_size=1),
        torch_data.DataLoader(NUMBERS, batch_size=None),
        type("Own", (torch_data.DataLoader,), {})(NUMBERS),
        [1, 2],
        None,
    ],
)
def test_what_cannot_be_sharded_is_left_as_it_is(loader: Any) -> None:
    assert from_torch(loader) is loader
