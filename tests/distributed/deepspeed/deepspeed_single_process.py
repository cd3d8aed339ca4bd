"""Run in one process: what a ``DeepSpeedTrial`` may do, and what it is told when it does something wrong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import deepspeed
import pytest
import torch
from support.training.trials import Noisy, as_foreign_checkpoint, local_core, newest_checkpoint
from torch import nn
from torch.utils.data import TensorDataset

from resolute import pytorch
from resolute.pytorch import Batch
from resolute.pytorch.deepspeed import DeepSpeedTrial, DeepSpeedTrialContext, Trainer, init
from resolute.trial_errors import InvalidCheckpointException, InvalidExperimentException

HERE = Path(sys.argv[1])
CONFIG = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}


class Plain(DeepSpeedTrial):
    """One engine; steps it as it should."""

    hidden = 4
    engines = 1

    def __init__(self, context: DeepSpeedTrialContext) -> None:
        self.context = context
        self.calls: list[int] = []
        self.all = [context.wrap_model_engine(self.build()) for _ in range(self.engines)]
        self.engine = self.all[0]

    def build(self) -> Any:
        model = nn.Sequential(nn.Linear(2, self.hidden), nn.Linear(self.hidden, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=CONFIG)
        return engine

    def build_training_data_loader(self) -> Any:
        return pytorch.DataLoader(Noisy(), batch_size=4)

    def build_validation_data_loader(self) -> Any:
        return pytorch.DataLoader(Noisy(), batch_size=4)

    def train_batch(self, dataloader_iter: Any, epoch_idx: int, batch_idx: int) -> Any:
        self.calls.append(batch_idx)
        for engine in self.all:
            loss = self.loss(engine, dataloader_iter)
            engine.backward(loss)
            engine.step()
        return loss

    def evaluate_batch(self, dataloader_iter: Any, batch_idx: int) -> dict[str, Any]:
        return {"validation_loss": self.loss(self.engine, dataloader_iter)}

    def loss(self, engine: Any, dataloader_iter: Any) -> torch.Tensor:
        x, y = self.context.to_device(next(dataloader_iter))
        loss: torch.Tensor = ((engine(x) - y) ** 2).mean()
        return loss


class Forgetful(Plain):
    """Trains its first micro batch only."""

    def train_batch(self, dataloader_iter: Any, epoch_idx: int, batch_idx: int) -> Any:
        if len(self.calls) % 2:
            self.calls.append(batch_idx)
            return torch.zeros(())
        return super().train_batch(dataloader_iter, epoch_idx, batch_idx)


class ByHand(Plain):
    """Trains all micro batches of a batch in one call."""

    def __init__(self, context: DeepSpeedTrialContext) -> None:
        super().__init__(context)
        context.disable_auto_grad_accumulation()

    def train_batch(self, dataloader_iter: Any, epoch_idx: int, batch_idx: int) -> Any:
        for _ in range(self.context.num_micro_batches_per_slot):
            loss = super().train_batch(dataloader_iter, epoch_idx, batch_idx)
        return loss


class Foreign(Plain):
    """Has the loader that DeepSpeed makes, which never ends."""

    def build_training_data_loader(self) -> Any:
        points = TensorDataset(torch.rand(40, 2), torch.rand(40, 1))
        return deepspeed.runtime.dataloader.RepeatingLoader(self.engine.deepspeed_io(points))


class Allowed(Foreign):
    def __init__(self, context: DeepSpeedTrialContext) -> None:
        super().__init__(context)
        context.disable_dataset_reproducibility_checks()


class Wider(Plain):
    hidden = 5


class Two(Plain):
    engines = 2


def train(trial_class: Any, name: str, **options: Any) -> Any:
    core_context, recorder = local_core(HERE / name)
    context = DeepSpeedTrialContext(core_context, 7, {}, 1, 0, None, 0, False)
    trial = trial_class(context)
    Trainer(trial, context).fit(**{"max_length": Batch(7), "checkpoint_policy": "none", **options})
    trial.recorder = recorder
    return trial


def main() -> None:
    with init(hparams={}) as context, pytest.raises(InvalidExperimentException, match="takes the engine"):
        context.wrap_model_engine(nn.Linear(1, 1))
    with init(hparams={}) as context:
        assert context.distributed.size == 1, "one process may begin as often as it likes"

    plain = train(Plain, "plain")
    assert plain.calls == [batch for batch in range(7) for _ in range(2)]
    assert plain.engine.global_steps == 7
    assert plain.context.get_per_slot_batch_size() == plain.context.get_global_batch_size() == 8
    assert plain.context.current_train_epoch() == 1, "an epoch has five batches of two micro batches"
    checkpoint = newest_checkpoint(HERE / "plain")

    with pytest.raises(AssertionError, match="step\\(\\) of the engine for each of the 2 micro batches"):
        train(Forgetful, "forgetful")
    by_hand = train(ByHand, "by-hand")
    assert len(by_hand.calls) == 14
    assert by_hand.engine.global_steps == 7
    with pytest.raises(RuntimeError, match=r"call context\.disable_dataset_reproducibility_checks\(\)"):
        train(Foreign, "foreign")
    assert train(Allowed, "allowed").context.current_train_epoch() == 1

    two = train(Two, "two")
    saved = HERE / "two" / newest_checkpoint(HERE / "two")
    assert {path.name for path in saved.iterdir()} >= {"model0", "model1", "det_state_dict_rank0.pth"}
    resumed = train(Two, "two", max_length=Batch(8), latest_checkpoint=saved.name)
    assert set(resumed.calls) == {7}
    assert [engine.global_steps for engine in resumed.all] == [8, 8], [two.all, resumed.all]

    for trial_class in (Wider, Two):
        with pytest.raises(InvalidCheckpointException):
            train(trial_class, "plain", latest_checkpoint=checkpoint)
    as_foreign_checkpoint(HERE / "plain", checkpoint)
    (HERE / "plain" / checkpoint / "det_state_dict_rank0.pth").unlink()
    with pytest.raises(InvalidCheckpointException, match="no checkpoint of a DeepSpeedTrial"):
        train(Plain, "plain", latest_checkpoint=checkpoint)

    tested = train(Plain, "tested", max_length=Batch(100), test_mode=True)
    assert tested.calls == [0, 0]
    assert [group for group, *_ in tested.recorder.reports] == ["training", "validation"]
    (HERE / "passed").touch()


main()
