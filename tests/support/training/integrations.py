"""One training, with all that a resume could lose, by each library that is integrated."""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
import torch.distributed as dist
from accelerate import Accelerator
from accelerate.utils import set_seed
from support.training.generated import RECORDS, Buckets, Order, Points
from support.training.pauses import Run
from torch import nn
from torch.utils import data
from transformers import Trainer, TrainerCallback, TrainingArguments

from resolute.accelerate import ResumableLoader
from resolute.lightning import ResoluteCallback
from resolute.pytorch.backends import random_state
from resolute.transformers import ResoluteCallback as TransformersCallback

BATCH = 5
BATCHES = 6
"""Of an epoch, of which the last is smaller."""
EPOCHS = 2
SEED = 11


@dataclass(frozen=True)
class Program:
    """What decides about the data of a training."""

    sampler: str = "shuffle"
    noise: str = ""
    workers: int = 0
    accumulation: int = 1
    epochs: int = EPOCHS
    zero: int | None = None
    """Stage of DeepSpeed's ZeRO, in a training by Hugging Face's ``Trainer``; None without DeepSpeed."""

    def loader(self, *, process: int) -> data.DataLoader[Any]:
        """The training data."""
        points = Points(self.noise, process=process)
        options: dict[str, Any] = {"num_workers": self.workers}
        if self.sampler == "buckets":
            return data.DataLoader(points, batch_sampler=Buckets(BATCH), **options)
        if self.sampler == "shuffle":
            return data.DataLoader(points, BATCH, shuffle=True, **options)
        return data.DataLoader(points, BATCH, sampler=Order(self.sampler, process=process), **options)


def model() -> nn.Module:
    """Always with the same weights."""
    with random_state.preserve_random_state(torch.device("cpu")):
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Dropout(0.4), nn.LayerNorm(6), nn.Linear(6, 1))


def optimizer_of(module: nn.Module) -> tuple[torch.optim.Optimizer, Any]:
    """An optimizer with a state, and its scheduler."""
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.9)


def loss_of(module: nn.Module, batch: Any) -> torch.Tensor:
    """The loss of a batch."""
    loss: torch.Tensor = ((module(batch[0]) - batch[1]) ** 2).mean()
    return loss


def state_of(module: nn.Module, optimizer: Any, scheduler: Any) -> Any:
    """All that decides how training goes on."""
    state = {
        "weights": module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "random": random_state.capture(torch.device("cpu")),
    }
    return copy.deepcopy(state)


class _Module(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = model()
        self.dealt: list[Any] = []
        self.after_batch: Any = None

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        self.dealt.append(batch)
        self.after_batch(self.current_epoch * self.trainer.num_training_batches + batch_idx + 1)
        return loss_of(self.model, batch)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("error", loss_of(self.model, batch))

    def configure_optimizers(self) -> Any:
        optimizer, scheduler = optimizer_of(self.model)
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]


def train_by_lightning(program: Program, run: Run) -> tuple[Any, list[Any]]:
    """By Lightning's ``Trainer``."""
    with run.begun() as trained, run.context() as context:
        if not run.checkpoint:
            pl.seed_everything(SEED, verbose=False)
        callback = ResoluteCallback(context, latest_checkpoint=run.checkpoint)
        module = _Module()
        module.after_batch = trained
        trainer = pl.Trainer(
            max_epochs=program.epochs,
            accumulate_grad_batches=program.accumulation,
            callbacks=[callback],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            accelerator="cpu",
            strategy="ddp" if dist.is_initialized() else "auto",
            devices=dist.get_world_size() if dist.is_initialized() else 1,
        )
        validation = data.DataLoader(Points("global", process=0), 13)
        loader = program.loader(process=run.process)
        trainer.fit(module, loader, validation, ckpt_path=callback.checkpoint_path)
        (scheduler,) = trainer.lr_scheduler_configs
        return state_of(module, trainer.optimizers[0], scheduler.scheduler), module.dealt


def train_by_accelerate(program: Program, run: Run) -> tuple[Any, list[Any]]:
    """By a loop over an ``Accelerator``'s objects, as docs/integrations.md has it."""
    with run.begun() as trained, run.context() as context:
        if not run.checkpoint:
            set_seed(SEED)
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=program.accumulation)
        module = model()
        prepared = accelerator.prepare(module, *optimizer_of(module), program.loader(process=run.process))
        module, optimizer, scheduler = prepared[:3]
        loader = ResumableLoader(prepared[3])
        accelerator.register_for_checkpointing(loader)
        steps, dealt = 0, []
        if run.checkpoint:
            with context.checkpoint.restore_path(run.checkpoint) as directory:
                accelerator.load_state(directory)
            steps = context.checkpoint.get_metadata(run.checkpoint)["steps_completed"]
        for batch in itertools.chain.from_iterable(loader for _ in range(loader.epoch, program.epochs)):
            dealt.append(batch)
            with accelerator.accumulate(module):
                accelerator.backward(loss_of(module, batch))
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            steps += 1
            trained(steps)
            if accelerator.sync_gradients and context.preempt.should_preempt():
                with context.checkpoint.store_path({"steps_completed": steps}, shard=True) as (directory, _):
                    accelerator.save_state(directory)
                break
        return state_of(module, optimizer.optimizer, scheduler.scheduler), dealt


class _Records(data.Dataset[Any]):
    """Records in the form that Hugging Face's ``Trainer`` wants."""

    def __init__(self, points: Points) -> None:
        self.points = points

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> dict[str, Any]:
        x, y, number = self.points[index]
        return {"x": x, "labels": y, "number": number}


class _Told(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Tells how many batches were trained."""

    def __init__(self, trained: Callable[[int], None], *, batches: int) -> None:
        self._trained = trained
        self._batches = batches

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._trained(state.global_step * self._batches)


class _Trainer(Trainer):  # type: ignore[misc, unused-ignore]
    program: Program
    process: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dealt: list[Any] = []

    def _get_train_sampler(self, *_: Any) -> Any:
        if self.program.sampler == "shuffle":
            return super()._get_train_sampler()
        if self.program.sampler == "weighted":
            return data.WeightedRandomSampler([1.0] * RECORDS, RECORDS)
        return Order(self.program.sampler, process=self.process)

    def compute_loss(self, model: nn.Module, inputs: Any, *_: Any, **__: Any) -> torch.Tensor:
        batch = [inputs["x"], inputs["labels"], inputs["number"]]
        self.dealt.append(batch)
        return loss_of(model, batch)


def train_by_transformers(program: Program, run: Run) -> tuple[Any, list[Any]]:
    """By Hugging Face's ``Trainer``."""
    with (
        run.begun() as trained,
        run.context() as context,
        _temporary(run) as output,
    ):
        args = TrainingArguments(
            str(output),
            num_train_epochs=program.epochs,
            per_device_train_batch_size=BATCH,
            gradient_accumulation_steps=program.accumulation,
            dataloader_num_workers=program.workers,
            save_strategy="no",
            logging_steps=1000,
            disable_tqdm=True,
            report_to=[],
            use_cpu=True,
            remove_unused_columns=False,
            seed=SEED,
            ddp_backend="gloo" if dist.is_initialized() else None,
            deepspeed=_deepspeed_config(program),
        )
        callback = TransformersCallback(context, args)
        module = model()
        kind = type("Made", (_Trainer,), {"program": program, "process": run.process})
        trainer = kind(
            model=module,
            args=args,
            train_dataset=_Records(Points(program.noise, process=run.process)),
            callbacks=[_Told(trained, batches=program.accumulation), callback],
            optimizers=optimizer_of(module),
        )
        resume = None
        if run.checkpoint:
            context.checkpoint.download(run.checkpoint, output)
            steps = context.checkpoint.get_metadata(run.checkpoint)["steps_completed"]
            resume = str(output / f"checkpoint-{steps}")
        trainer.train(resume_from_checkpoint=resume)
        optimizer, scheduler = trainer.optimizer.optimizer, trainer.lr_scheduler
        if program.zero is not None:
            return _state_with_zero(module, scheduler), trainer.dealt
        return state_of(module, optimizer, scheduler), trainer.dealt


def _state_with_zero(module: nn.Module, scheduler: Any) -> Any:
    """The whole weights, which tell of the optimizer's state too: of that, ranks have parts with padding."""
    import deepspeed  # only `make distributed` has it

    parameters = list(module.parameters())
    with deepspeed.zero.GatheredParameters(parameters):
        weights = [parameter.detach().clone() for parameter in parameters]
    random_numbers = random_state.capture(torch.device("cpu"))
    return {"weights": weights, "scheduler": scheduler.state_dict(), "random": random_numbers}


@contextlib.contextmanager
def _temporary(run: Run) -> Iterator[Path]:
    path = run.directory.with_name(f"{run.directory.name}-output-{run.process}")
    path.mkdir(parents=True, exist_ok=True)
    yield path


def _deepspeed_config(program: Program) -> dict[str, Any] | None:
    if program.zero is None:
        return None
    return {
        "zero_optimization": {"stage": program.zero},
        "zero_allow_untested_optimizer": True,
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
    }
