from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from support.training.trials import (
    LineTrial,
    as_foreign_checkpoint,
    local_context,
    newest_checkpoint,
    same,
    weights,
)
from torch import nn

from resolute import pytorch
from resolute.pytorch import Batch, Trainer
from resolute.trial_errors import InvalidCheckpointException
from resolute.trials.trial_state import TrialState


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    context, _ = local_context(tmp_path)
    Trainer(LineTrial(context), context).fit(max_length=Batch(2))
    return tmp_path / newest_checkpoint(tmp_path)


def load(path: Path, **options: Any) -> Any:
    return pytorch.load_trial_from_checkpoint_path(str(path), **options)


def test_a_trial_is_loaded_by_the_class_that_its_checkpoint_names(checkpoint: Path) -> None:
    trial = load(checkpoint, torch_load_kwargs={"map_location": "cpu"})
    saved = torch.load(checkpoint / "state_dict.pth", weights_only=False)["models_state_dict"][0]
    assert same(weights(trial), list(saved.values()))
    assert type(trial).__name__ == "LineTrial"


@pytest.mark.parametrize(
    "name", ["state-dict.pth", "determined/state_dict.pth", "pedl/state_dict.pth", "checkpoint.pt"]
)
def test_older_layouts_load(checkpoint: Path, name: str) -> None:
    state = torch.load(checkpoint / "state_dict.pth", weights_only=False)
    expected = list(state["models_state_dict"][0].values())
    old = {
        "model_state_dict": {f"module.{key}": value for key, value in state["models_state_dict"][0].items()},
        "optimizer_state_dict": state["optimizers_state_dict"][0],
        "lr_scheduler": state["lr_schedulers_state_dict"][0],
    }
    (checkpoint / "state_dict.pth").unlink()
    (checkpoint / name).parent.mkdir(exist_ok=True)
    torch.save(old, checkpoint / name)
    assert same(weights(load(checkpoint, trial_class=LineTrial)), expected)


def test_arguments_of_the_trial_and_its_context_can_be_given(checkpoint: Path) -> None:
    class Argued(LineTrial):
        def __init__(self, context: Any, more: int) -> None:
            super().__init__(context)
            self.more = more

    context = pytorch.CheckpointLoadContext(hparams={"lr": 3})
    trial = load(checkpoint, trial_class=Argued, trial_kwargs={"context": context, "more": 4})
    assert trial.more == 4
    assert trial.context.get_hparam("lr") == 3


def test_mistakes_are_named(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="torch_load_kwargs"):
        load(checkpoint, torch_load_kwargs={"map_location": "cpu"}, map_location="cpu")
    with pytest.raises(AssertionError, match=r"load_data\.json"):
        load(tmp_path / "nothing")
    description = checkpoint / "load_data.json"
    description.write_text(json.dumps({"trial_cls_spec": "no_such_module:Trial"}))
    with pytest.raises(ValueError, match="pass trial_class"):
        load(checkpoint)
    (checkpoint / "state_dict.pth").unlink()
    with pytest.raises(InvalidCheckpointException, match=r"state_dict\.pth"):
        load(checkpoint, trial_class=LineTrial)


def test_a_class_of_the_code_in_the_checkpoint_is_imported_even_relatively(checkpoint: Path) -> None:
    code = checkpoint / "code"
    (code / "neighbour.py").write_text("from support.training.trials import LineTrial as Base\n")
    (code / "model_def.py").write_text("from .neighbour import Base\n\nclass Mine(Base):\n    pass\n")
    (checkpoint / "load_data.json").write_text(json.dumps({"trial_cls_spec": "model_def:Mine"}))
    assert type(load(checkpoint)).__name__ == "Mine"


def test_counters_of_older_releases_are_read(tmp_path: Path) -> None:
    old = {"trial_id": 5, "last_ckpt": 0, "step_id": 1, "last_val": 0, "steps_completed": 30}
    (tmp_path / "workload_sequencer.pkl").write_bytes(pickle.dumps(old))
    state = TrialState.read(tmp_path)
    assert state is not None
    assert (state.trial_id, state.batches_trained, state.last_val) == (5, 30, 0)


def test_another_trials_checkpoint_gives_weights_but_no_counters(checkpoint: Path) -> None:
    state = pickle.loads((checkpoint / "trial_state.pkl").read_bytes())
    (checkpoint / "trial_state.pkl").write_bytes(pickle.dumps({**state, "trial_id": 99}))
    as_foreign_checkpoint(checkpoint.parent, checkpoint.name)
    context, _ = local_context(checkpoint.parent)
    trial = LineTrial(context)
    Trainer(trial, context).fit(max_length=Batch(1), latest_checkpoint=checkpoint.name)
    assert trial.seen == [0]


class FirstTrial(pytorch.PyTorchTrial):
    def __init__(self, context: Any) -> None:
        self.context = context

    def build_model(self) -> nn.Module:
        return nn.Linear(2, 1)

    def optimizer(self, model: nn.Module) -> Any:
        return torch.optim.SGD(model.parameters(), lr=0.1)

    def create_lr_scheduler(self, optimizer: Any) -> Any:
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        return pytorch.LRScheduler(scheduler, pytorch.LRScheduler.StepMode.STEP_EVERY_BATCH)

    def build_training_data_loader(self) -> pytorch.DataLoader:
        pairs: Any = [(torch.ones(2), torch.ones(1))] * 4
        return pytorch.DataLoader(pairs, batch_size=2)

    build_validation_data_loader = build_training_data_loader

    def train_batch(  # type: ignore[override]
        self, batch: Any, model: nn.Module, epoch_idx: int, batch_idx: int
    ) -> Any:
        return {"loss": ((model(batch[0]) - batch[1]) ** 2).mean()}

    def evaluate_batch(self, batch: Any, model: nn.Module) -> Any:  # type: ignore[override]
        return {"error": (model(batch[0]) - batch[1]).abs().mean()}


def test_a_trial_in_the_style_of_the_first_releases_trains_and_loads(tmp_path: Path) -> None:
    context, recorder = local_context(tmp_path)
    Trainer(FirstTrial(context), context).fit(max_length=Batch(3), reporting_period=Batch(1))
    losses = [metrics["loss"] for _, metrics in recorder.of("training")]
    assert losses[0] > losses[1] > losses[2]
    assert context.lr_schedulers[0].get_last_lr() == [pytest.approx(0.1**4)]
    loaded = load(tmp_path / newest_checkpoint(tmp_path), trial_class=FirstTrial)
    assert type(loaded) is nn.Linear
    assert same(list(loaded.parameters()), list(context.models[0].parameters()))
