"""Mixed precision: the trainer computes what a plain loop of torch computes."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import torch
from support.training.trials import local_context, newest_checkpoint, same, weights_of
from torch import nn
from torch.utils.data import TensorDataset

from resolute import pytorch
from resolute.pytorch import Batch, PyTorchTrialContext, Trainer

SIZE = 4
TOO_LARGE = 3
"""The batch whose gradients are no finite numbers once they are scaled."""


def make_model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def make_scaler(device: str) -> torch.amp.GradScaler:
    return torch.amp.GradScaler(device, init_scale=2.0**10, growth_interval=2)


def records(batches: int) -> TensorDataset:
    x = torch.arange(batches * SIZE * 2.0).reshape(-1, 2) / 100
    y = x.sum(dim=1, keepdim=True)
    if batches > TOO_LARGE:
        y[TOO_LARGE * SIZE] = 3e37
    return TensorDataset(x, y)


def loss_of(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (output.float() - y).square().mean()


class Precise(pytorch.PyTorchTrial):
    """Trains in lower precision by itself, with a scaler of its own, or both."""

    batches = 6
    automatic = False
    own_scaler = False
    compiled = False

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        if self.automatic:
            context.experimental.use_amp()
        self.scaler = context.wrap_scaler(make_scaler(context.device.type)) if self.own_scaler else None
        model: Any = make_model()
        if self.compiled:
            model = torch.compile(model, backend="aot_eager")
        self.model = context.wrap_model(model)
        self.optimizer = context.wrap_optimizer(make_optimizer(self.model))
        self.dtypes: set[torch.dtype] = set()

    def build_training_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(records(self.batches), batch_size=SIZE)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(records(1), batch_size=SIZE)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        x, y = batch
        output = self.model(x)
        self.dtypes.add(output.dtype)
        loss = loss_of(output, y)
        self.context.backward(self.scaler.scale(loss) if self.scaler is not None else loss)
        self.context.step_optimizer(self.optimizer, scaler=self.scaler)
        if self.scaler is not None:
            self.scaler.update()
        return {"loss": loss}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:  # type: ignore[override]  # the older form
        return {"loss": loss_of(self.model(batch[0]), batch[1])}


class Automatic(Precise):
    automatic = True
    batches = TOO_LARGE


class Compiled(Automatic):
    compiled = True


class Scaled(Precise):
    own_scaler = True


def plainly(
    batches: int, device: torch.device, *, cast: torch.dtype | None, scaled: bool
) -> tuple[nn.Module, Any]:
    """The loop that torch documents."""
    model = make_model().to(device)
    optimizer = make_optimizer(model)
    scaler = make_scaler(device.type) if scaled else None
    data = records(batches)
    for number in range(batches):
        x, y = (tensor.to(device) for tensor in data[number * SIZE : (number + 1) * SIZE])
        with torch.autocast(device.type, cast) if cast else contextlib.nullcontext():
            output = model(x)
        loss = loss_of(output, y)
        if scaler is None:
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        else:
            scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
            scaler.step(optimizer)
            scaler.update()
        optimizer.zero_grad()
    return model, scaler


def train(directory: Path, trial_class: type[Precise], length: int, latest: str | None = None) -> Any:
    context, _ = local_context(directory)
    trial = trial_class(context)
    Trainer(trial, context).fit(max_length=Batch(length), checkpoint_policy="none", latest_checkpoint=latest)
    context._core.close()
    return trial


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here: it scales losses, and has a test below")
@pytest.mark.parametrize("trial_class", [Automatic, Compiled])
def test_automatic_precision_computes_what_autocast_does(tmp_path: Path, trial_class: type[Precise]) -> None:
    trial = train(tmp_path, trial_class, TOO_LARGE)
    plain, _ = plainly(TOO_LARGE, trial.context.device, cast=torch.bfloat16, scaled=False)
    assert trial.dtypes == {torch.bfloat16}
    assert same(weights_of(trial.model), weights_of(plain))


def test_a_scaler_of_the_trial_skips_steps_and_changes_its_scale_as_in_a_plain_loop(tmp_path: Path) -> None:
    trial = train(tmp_path, Scaled, 6)
    plain, scaler = plainly(6, trial.context.device, cast=None, scaled=True)
    assert same(weights_of(trial.model), weights_of(plain))
    assert trial.scaler.state_dict() == scaler.state_dict()
    # Grown after two good batches, halved by the one that was too large, grown after two more.
    assert trial.scaler.get_scale() == 2.0**11


@pytest.mark.parametrize("stop", [TOO_LARGE, TOO_LARGE + 1])
def test_a_scaler_goes_on_from_a_checkpoint_as_if_nothing_had_happened(tmp_path: Path, stop: int) -> None:
    whole = train(tmp_path / "whole", Scaled, 6)
    train(tmp_path / "parts", Scaled, stop)
    resumed = train(tmp_path / "parts", Scaled, 6, newest_checkpoint(tmp_path / "parts"))
    assert resumed.scaler.state_dict() == whole.scaler.state_dict()
    assert same(weights_of(resumed.model), weights_of(whole.model))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: none is here")
def test_automatic_precision_scales_on_a_gpu_as_a_plain_loop_does(tmp_path: Path) -> None:
    class Whole(Automatic):
        batches = 6

        def __init__(self, context: PyTorchTrialContext) -> None:
            super().__init__(context)
            context._precision.scaler = make_scaler(context.device.type)

    trial = train(tmp_path, Whole, 6)
    plain, scaler = plainly(6, trial.context.device, cast=torch.float16, scaled=True)
    assert trial.dtypes == {torch.float16}
    assert trial.context._precision.scaler.state_dict() == scaler.state_dict()
    for ours, theirs in zip(weights_of(trial.model), weights_of(plain), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-3)


def test_automatic_scaling_updates_once_for_all_optimizers_of_a_batch(tmp_path: Path) -> None:
    """The scaler stands in for a GPU's: on the CPU nothing needs one, and its arithmetic is the same."""

    class Twice(Automatic):
        def __init__(self, context: PyTorchTrialContext) -> None:
            super().__init__(context)
            context._precision.scaler = make_scaler(context.device.type)
            self.other = context.wrap_optimizer(make_optimizer(context.wrap_model(make_model())))

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            returned = super().train_batch(batch, epoch_idx, batch_idx)
            second = loss_of(self.context.models[1](batch[0]), batch[1])
            self.context.backward(second)
            self.context.step_optimizer(self.other)
            return returned

    trial = train(tmp_path, Twice, TOO_LARGE)
    plain, scaler = plainly(TOO_LARGE, trial.context.device, cast=next(iter(trial.dtypes)), scaled=True)
    assert trial.context._precision.scaler.get_scale() == scaler.get_scale() == 2.0**11
    assert all(same(weights_of(model), weights_of(plain)) for model in trial.context.models)
