"""The guide to training in PyTorch, part by part, by the import name that it uses."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.training.trials import Recorder, local_context, newest_checkpoint, same, weights
from torch import nn

import determined as det
from resolute.pytorch import Batch, Trainer
from resolute.pytorch.data import samplers

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "pytorch.md"
DIGITS = ROOT / "examples" / "digits_trial"
HPARAMS = {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4, "global_batch_size": 4}
PAIRS: Any = [(torch.tensor([label / 3, 1.0]), label) for label in (0, 1, 2, 0, 2, 1, 1, 0)]


def skeleton() -> Any:
    """A trial as the guide begins one: all methods, and nothing wrapped yet."""
    DataLoader = det.pytorch.DataLoader  # noqa: N806 - a class
    PyTorchTrial: Any = det.pytorch.PyTorchTrial  # noqa: N806 - a class

    class MyTrial(PyTorchTrial):  # type: ignore[misc]
        def __init__(self, context: Any) -> None:
            self.context = context
            torch.manual_seed(0)
            self.model = context.wrap_model(nn.Linear(2, 3))
            optimizer = torch.optim.SGD(
                self.model.parameters(),
                self.context.get_hparam("lr"),
                momentum=self.context.get_hparam("momentum"),
                weight_decay=self.context.get_hparam("weight_decay"),
            )
            self.optimizer = self.context.wrap_optimizer(optimizer)
            self.criterion = nn.CrossEntropyLoss()

        def build_training_data_loader(self) -> Any:
            return DataLoader(PAIRS, batch_size=self.context.get_per_slot_batch_size(), shuffle=True)

        def build_validation_data_loader(self) -> Any:
            return DataLoader(PAIRS, batch_size=self.context.get_per_slot_batch_size())

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            images, target = batch
            output = self.model(images)
            loss = self.criterion(output, target)
            top1 = (output.argmax(dim=1) == target).float().mean()
            self.context.backward(loss)
            self.context.step_optimizer(self.optimizer)
            return {"loss": loss.item(), "top1": top1}

        def evaluate_batch(self, batch: Any) -> Any:
            images, target = batch
            return {"validation_loss": self.criterion(self.model(images), target).item()}

    return MyTrial


def train(trial_class: Any, directory: Path, **options: Any) -> tuple[Any, Recorder]:
    config = options.pop("exp_conf", None)
    context, recorder = local_context(directory, hparams=HPARAMS, exp_conf=config)
    trial = trial_class(context)
    Trainer(trial, context).fit(**{"max_length": Batch(4), "checkpoint_policy": "none", **options})
    return trial, recorder


def test_metrics_of_batches_are_averaged_and_an_optimizer_steps_as_its_hyperparameters_say(
    tmp_path: Path,
) -> None:
    each: list[float] = []

    class Noting(skeleton()):  # type: ignore[misc]
        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            metrics = super().train_batch(batch, epoch_idx, batch_idx)
            each.append(metrics["loss"])
            return metrics

    trial, recorder = train(Noting, tmp_path)
    ((steps, metrics),) = recorder.of("training")
    assert steps == 4
    assert metrics["loss"] == pytest.approx(np.mean(each))
    assert 0.0 <= metrics["top1"] <= 1.0
    assert trial.optimizer.param_groups[0]["momentum"] == HPARAMS["momentum"]
    assert [set(metrics) for _, metrics in recorder.of("validation")] == [{"validation_loss"}]


def test_data_are_downloaded_to_a_directory_of_each_rank(tmp_path: Path) -> None:
    def download_data(download_directory: str, url: str) -> str:
        Path(download_directory).mkdir()
        (Path(download_directory) / "from").write_text(url)
        return download_directory

    class Downloading(skeleton()):  # type: ignore[misc]
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            directory = tmp_path / f"data-rank{self.context.distributed.get_rank()}"
            self.download_directory = download_data(
                download_directory=str(directory), url=self.context.get_data_config()["url"]
            )

    trial, _ = train(Downloading, tmp_path / "checkpoints", exp_conf={"data": {"url": "file://images"}})
    assert trial.download_directory.endswith("data-rank0")
    assert (Path(trial.download_directory) / "from").read_text() == "file://images"


def arrays(make: Callable[[Any], Any]) -> Any:
    return {
        "data": [{"sub_data1": make([[0, 0], [0, 0]])}, {"sub_data2": make([0, 0])}],
        "label": (make([0, 0]), make([[0, 0], [0, 0]])),
    }


@pytest.mark.parametrize("make", [np.array, torch.tensor], ids=["arrays", "tensors"])
@pytest.mark.parametrize(
    "form",
    [
        lambda make: make([[0, 0], [0, 0]]),
        lambda make: (make([0, 0]), make([0, 0])),
        lambda make: [make([0, 0]), make([0, 0])],
        lambda make: {"data": make([0, 0]), "label": make([0, 0])},
        arrays,
    ],
    ids=["one", "tuple", "list", "dict", "nested"],
)
def test_batches_come_in_the_form_of_the_loader_as_tensors(form: Any, make: Any, tmp_path: Path) -> None:
    DataLoader = det.pytorch.DataLoader  # noqa: N806 - a class

    seen: list[Any] = []

    class Forms(skeleton()):  # type: ignore[misc]
        def build_training_data_loader(self) -> Any:
            return DataLoader([0, 1], batch_size=2, collate_fn=lambda _: form(make))

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            seen.append(batch)
            return {"loss": 0.0}

    train(Forms, tmp_path, max_length=Batch(1))
    assert shape_of(seen[0]) == shape_of(form(torch.tensor))


def shape_of(batch: Any) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch.shape
    if isinstance(batch, dict):
        return {name: shape_of(value) for name, value in batch.items()}
    return type(batch), [shape_of(value) for value in batch]


@pytest.mark.parametrize(("mode", "rates"), [("STEP_EVERY_EPOCH", 2), ("MANUAL_STEP", 4)])
def test_learning_rates_are_scheduled_by_epoch_or_by_hand(mode: str, rates: int, tmp_path: Path) -> None:
    LRScheduler = det.pytorch.LRScheduler  # noqa: N806 - a class

    class Scheduled(skeleton()):  # type: ignore[misc]
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, gamma=0.5, step_size=1)
            self.lr_sch = self.context.wrap_lr_scheduler(scheduler, step_mode=LRScheduler.StepMode[mode])

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            metrics = super().train_batch(batch, epoch_idx, batch_idx)
            if mode == "MANUAL_STEP":
                self.lr_sch.step()
            return metrics

    trial, _ = train(Scheduled, tmp_path)  # two epochs of two batches
    assert trial.optimizer.param_groups[0]["lr"] == pytest.approx(0.1 * 0.5**rates)


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def block_with(words: str) -> str:
    (found,) = [block for block in blocks() if words in block]
    return found


def own_loader_trial() -> Any:
    """A trial that shards, shuffles and skips by itself, with the function that the page shows."""
    names: dict[str, Any] = {"torch": torch, "samplers": samplers}
    exec(block_with("def make_batch_sampler").partition("\n\n\n")[0], names)
    make_batch_sampler = names["make_batch_sampler"]

    class Own(skeleton()):  # type: ignore[misc]
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            context.experimental.disable_dataset_reproducibility_checks()

        def loader(self, mode: str) -> Any:
            batch_sampler = make_batch_sampler(
                PAIRS,
                mode=mode,
                shuffle_seed=self.context.get_trial_seed(),
                num_workers=self.context.distributed.get_size(),
                rank=self.context.distributed.get_rank(),
                batch_size=self.context.get_per_slot_batch_size(),
                skip=self.context.get_initial_batch(),
            )
            return torch.utils.data.DataLoader(PAIRS, batch_sampler=batch_sampler)

        def build_training_data_loader(self) -> Any:
            return self.loader("training")

        def build_validation_data_loader(self) -> Any:
            return self.loader("validation")

    return Own


def test_a_loader_that_follows_the_rules_resumes_exactly(tmp_path: Path) -> None:
    trial_class = own_loader_trial()
    whole, _ = train(trial_class, tmp_path / "whole", max_length=Batch(7))
    train(trial_class, tmp_path / "parts", max_length=Batch(3))
    checkpoint = newest_checkpoint(tmp_path / "parts")
    resumed, _ = train(trial_class, tmp_path / "parts", max_length=Batch(7), latest_checkpoint=checkpoint)
    assert same(weights(whole), weights(resumed))


@pytest.mark.filterwarnings("ignore:.*Profiler clears events")
def test_the_profiler_records_as_often_as_its_schedule_says(tmp_path: Path) -> None:
    def traces() -> set[Path]:
        return set(local_context(tmp_path)[0].get_tensorboard_path().rglob("*.pt.trace.json*"))

    before = traces()

    class Profiled(skeleton()):  # type: ignore[misc]
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            context.set_profiler(
                activities=[torch.profiler.ProfilerActivity.CPU],
                schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2),
            )

    train(Profiled, tmp_path, max_length=Batch(10))
    assert len(traces() - before) == 2


def test_the_trial_of_the_page_trains_as_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    data = [(torch.rand(2), torch.ones(1)) for _ in range(64)]
    names: dict[str, Any] = {
        "torch": torch,
        "make_model": lambda: nn.Linear(2, 1),
        "loss_of": nn.functional.mse_loss,
        "train_set": data,
        "validation_set": data,
    }
    exec(block_with("class MyTrial"), names)
    exec(block_with("max_length=pytorch.Epoch(10)"), names)
    assert len(list(tmp_path.rglob("state_dict.pth"))) == 10


def test_batches_are_processed_as_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    names: dict[str, Any] = {
        "torch": torch,
        "pytorch": det.pytorch,
        "make_model": lambda: nn.Linear(2, 1),
        "dataset": torch.utils.data.TensorDataset(torch.rand(100, 2)),
    }
    exec(block_with("class Predictions"), names)
    predictions = [torch.load(path) for path in sorted(tmp_path.glob("**/rank_0/*.pt"))]
    assert [len(predicted) for predicted in predictions] == [64, 36]


def run(arguments: list[str], data: Path, program: str = "") -> str:
    """Runs Python beside the digits trial, off cluster; returns what it said."""
    environment = {**os.environ, "XDG_DATA_HOME": str(data), "PYTHONPATH": str(ROOT / "compat")}
    done = subprocess.run(
        [sys.executable, *arguments],
        input=program,
        cwd=DIGITS,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.integration
def test_a_script_runs_by_itself(tmp_path: Path) -> None:
    run(["train.py", "--epochs", "1"], tmp_path)
    assert len(list(tmp_path.rglob("state_dict.pth"))) == 1


KERNEL = """
import asyncio, pathlib

async def kernel():
    # One namespace, no file, and a loop that is running: as the kernel of a notebook has it.
    _, *cells = pathlib.Path("notebook.py").read_text().split("# %%")
    for cell in cells:
        exec(compile("#" + cell, "<cell>", "exec"), globals())

asyncio.run(kernel())
"""


@pytest.mark.integration
def test_cells_of_a_notebook_train_and_go_on(tmp_path: Path) -> None:
    first, second, guess = run(["-"], tmp_path, KERNEL).splitlines()
    assert ast.literal_eval(second)["validation_loss"] < ast.literal_eval(first)["validation_loss"]
    assert re.fullmatch(r"guessed \d of \d", guess)
