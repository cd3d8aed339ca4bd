"""Training programs that are put together at random: what people write, and some of what they forget."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from support.training import loaders
from torch import nn
from torch.utils import data

from resolute import pytorch
from resolute.pytorch import PyTorchTrialContext
from resolute.pytorch.trial.lr_scheduler import StepMode

RECORDS = 26
"""No multiple of any batch size, so that epochs end with a smaller batch."""


@dataclass(frozen=True)
class Program:
    """One combination of all that decides how a training goes on."""

    seed: int
    model: str
    optimizer: str
    scheduler: str
    accumulation: str
    sampler: str
    noise: str
    workers: int
    precision: str
    adversarial: bool
    batch_size: int
    drop_last: bool
    forgotten: str
    loading: str
    """How the data is loaded, where not by the platform's loader."""
    further: str
    """How a second loader is gone through."""

    @property
    def refused(self) -> bool:
        """Whether something of it would be in no checkpoint."""
        return bool(self.forgotten) or self.further in LOST_LOADERS


MODELS = ("linear", "dropout", "norm", "recurrent")
OPTIMIZERS = ("sgd", "momentum", "adam", "adamw", "rmsprop", "adagrad", "nadam")
SCHEDULERS = ("", "step", "epoch", "one_cycle", "chained", "plateau")
ACCUMULATION = ("", "frequency", "own", "own_without_zero", "uneven")
SAMPLERS = (
    "sequential",
    "shuffle",
    "torch",
    "python",
    "numpy",
    "own_generator",
    "other_generator_each_run",
    "counting",
    "set_epoch",
    "weighted",
    "buckets",
    "own_torch_generator",
    "lazy",
    "nested",
)
NOISE = ("", "global", "own_numpy", "own_python", "closure", "module", "collate", "trial")
PRECISION = ("", "", "amp", "scaled")
OF_MODULE = np.random.default_rng()
"""As a module with a data set may have one; a trial seeds it anew, as a new process would."""
LOADING = ("stateful", "reads_ahead", "torchdata", "skips", "zipped")
FURTHER = ("own", "torchdata", "callback", "iterator", "cycle", "prefetcher")
LOST_LOADERS = {"iterator", "cycle", "prefetcher"}
FORGOTTEN = ("model", "optimizer", "scheduler", "second_model", "second_optimizer")


def programs(seed: int, count: int) -> list[Program]:
    """Returns so many programs; one in ten forgets to wrap something."""
    draw = random.Random(seed)
    made = []
    for number in range(count):
        workers = 2 if draw.random() < 0.08 else 0
        loading = draw.choice(LOADING) if draw.random() < 0.25 else ""
        further = draw.choice(FURTHER) if not loading and draw.random() < 0.25 else ""
        made.append(
            Program(
                seed=number,
                model=draw.choice(MODELS),
                optimizer=draw.choice(OPTIMIZERS),
                scheduler=draw.choice(SCHEDULERS),
                accumulation=draw.choice(ACCUMULATION),
                sampler=draw.choice(SAMPLERS),
                noise=draw.choice(NOISE),
                workers=0 if loading else workers,
                precision=draw.choice(PRECISION),
                adversarial=draw.random() < 0.2,
                batch_size=draw.choice((3, 4, 5)),
                drop_last=draw.random() < 0.3,
                forgotten=draw.choice(FORGOTTEN) if draw.random() < 0.1 else "",
                loading=loading,
                further=further,
            )
        )
    return made


class Points(data.Dataset[Any]):
    """Points, with noise that is drawn when they are read."""

    def __init__(self, noise: str, *, process: int) -> None:
        self._noise = noise
        self.numpy = np.random.default_rng(3)
        self.python = random.Random(process)
        self.draw = _drawing(process)

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        noise = 0.0
        if self._noise == "global":
            noise = float(torch.rand(()) + np.random.random() + random.random())
        elif self._noise == "own_numpy":
            noise = float(self.numpy.random())
        elif self._noise == "own_python":
            noise = self.python.random()
        elif self._noise == "closure":
            noise = self.draw()
        elif self._noise == "module":
            noise = float(OF_MODULE.random())
        x = torch.tensor([index / RECORDS, 1.0, noise])
        return x, x.sum(dim=0, keepdim=True), index


def _drawing(process: int) -> Callable[[], float]:
    generator = random.Random(process)

    def draw() -> float:
        return generator.random()

    return draw


class Noisy:
    """Makes batches with noise, as what mixes records does."""

    def __init__(self, *, process: int) -> None:
        self.numpy = np.random.default_rng(process)

    def __call__(self, records: list[Any]) -> Any:
        x, y, indices = data.default_collate(records)
        return x + float(self.numpy.random()), y, indices


class Order(data.Sampler[int]):
    """A sampler as people write them."""

    def __init__(self, kind: str, *, process: int) -> None:
        self._kind = kind
        self._passes = 0
        self.epoch = 0
        self.generator_of_numpy = np.random.RandomState(5)
        self.generator_of_python = random.Random(process)
        self.generator_of_torch = torch.Generator().manual_seed(9)

    def __len__(self) -> int:
        return RECORDS

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        order = list(range(RECORDS))
        if self._kind == "torch":
            order = torch.randperm(RECORDS).tolist()
        elif self._kind == "python":
            random.shuffle(order)
        elif self._kind == "numpy":
            np.random.shuffle(order)
        elif self._kind == "own_generator":
            self.generator_of_numpy.shuffle(order)
        elif self._kind == "other_generator_each_run":
            self.generator_of_python.shuffle(order)
        elif self._kind == "own_torch_generator":
            order = torch.randperm(RECORDS, generator=self.generator_of_torch).tolist()
        elif self._kind == "counting":
            self._passes += 1
            order = order[self._passes % RECORDS :] + order[: self._passes % RECORDS]
        elif self._kind == "set_epoch":
            random.Random(self.epoch).shuffle(order)
        elif self._kind == "lazy":
            order = (random.randrange(RECORDS) for _ in order)  # type: ignore[assignment]
        yield from order


class Reversed(data.Sampler[int]):
    """Deals what another sampler deals in turned pairs, of which it draws the turns."""

    def __init__(self, sampler: Order) -> None:
        self.inner = sampler
        self.turns = random.Random(1)

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self) -> Iterator[int]:
        dealt = iter(self.inner)
        for pair in zip(dealt, dealt, strict=True):
            yield from sorted(pair, reverse=self.turns.random() < 0.5)


class Buckets(data.Sampler[list[int]]):
    """Batches of neighbours, in an order that is drawn: their number differs from pass to pass."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return (RECORDS + self._size - 1) // self._size

    def __iter__(self) -> Iterator[list[int]]:
        first = random.randrange(self._size)
        edges = [0, *range(first or self._size, RECORDS, self._size), RECORDS]
        batches = [list(range(a, b)) for a, b in itertools.pairwise(edges)]
        np.random.shuffle(batches)
        yield from batches


class Generated(pytorch.PyTorchTrial):
    """The trial of a program, which remembers the records that it was dealt."""

    program: Program
    process: int
    """What a generator is seeded by that a script leaves to the system: it differs from run to run."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        program = self.program
        torch.manual_seed(program.seed)
        OF_MODULE.bit_generator.state = np.random.default_rng(self.process).bit_generator.state
        self.own = np.random.default_rng(self.process)
        if program.precision:
            scaler = {"init_scale": 8.0, "growth_interval": 3} if program.precision == "scaled" else None
            context.experimental.use_amp(scaler_options=scaler)
        model, judge = _model(program.model), nn.Linear(1, 1)
        self.model = model if program.forgotten == "model" else context.wrap_model(model)
        self.judge = None
        if program.adversarial or program.forgotten in {"second_model", "second_optimizer"}:
            self.judge = judge if program.forgotten == "second_model" else context.wrap_model(judge)
        self.optimizer = self._wrapped(_optimizer(program.optimizer, self.model), "optimizer")
        self.second = None
        if self.judge is not None:
            self.second = self._wrapped(_optimizer("adam", self.judge), "second_optimizer")
        self.scheduler = _scheduler(program, self.optimizer)
        if self.scheduler is not None and program.forgotten != "scheduler":
            context.wrap_lr_scheduler(self.scheduler, _step_mode(program.scheduler))
        self.dealt: list[list[int]] = []
        self.after_batch: Any = None
        if program.loading:
            context.experimental.disable_dataset_reproducibility_checks()
        self.further = loaders.further(program.further, process=self.process)
        self.further_batches: Any = None

    def _wrapped(self, optimizer: Any, name: str) -> Any:
        return optimizer if self.program.forgotten == name else self.context.wrap_optimizer(optimizer)

    def build_training_data_loader(self) -> Any:
        program, points = self.program, Points(self.program.noise, process=self.process)
        if program.loading:
            return loaders.loader(
                program.loading, points, size=program.batch_size, skip=self.context.get_initial_batch()
            )
        options: dict[str, Any] = {"num_workers": program.workers}
        if program.workers:
            options["prefetch_factor"] = 3
        if program.noise == "collate":
            options["collate_fn"] = Noisy(process=self.process)
        if program.sampler == "buckets":
            return pytorch.DataLoader(points, batch_sampler=Buckets(program.batch_size), **options)
        options |= {"batch_size": program.batch_size, "drop_last": program.drop_last}
        if program.sampler == "weighted":
            weighted = data.WeightedRandomSampler([1.0 + i for i in range(RECORDS)], RECORDS)
            return pytorch.DataLoader(points, sampler=weighted, **options)
        if program.sampler in {"sequential", "shuffle"}:
            return pytorch.DataLoader(points, shuffle=program.sampler == "shuffle", **options)
        order: data.Sampler[int] = Order(program.sampler, process=self.process)
        if program.sampler == "nested":
            order = Reversed(Order("other_generator_each_run", process=self.process))
        return pytorch.DataLoader(points, sampler=order, **options)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(Points("global", process=0), batch_size=13)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        program, (x, y, indices) = self.program, batch
        self.dealt.append(indices.tolist())
        if program.noise == "trial":
            x = x + float(self.own.random())
        if self.further is not None:
            x = x + self._further_batch()
        found = self.model(x)
        loss = ((found - y) ** 2).mean()
        if self.judge is not None:
            loss = loss + self.judge(found).square().mean() * 0.01
        self._learn(loss, batch_idx)
        if self.second is not None and self.judge is not None:
            self.context.backward(self.judge(y).square().mean() + self.judge(x[:, :1]).mean() * 0.1)
            self.context.step_optimizer(self.second)
        if self.after_batch is not None:
            self.after_batch(batch_idx + 1)
        return {"loss": loss}

    def _further_batch(self) -> torch.Tensor:
        """The next batch of the second loader, which begins again when it ends."""
        if self.further_batches is None:
            self.further_batches = iter(self.further)
        batch = next(self.further_batches, None)
        if batch is None:
            self.further_batches = iter(self.further)
            batch = next(self.further_batches)
        self.dealt.append(batch.tolist())
        mean: torch.Tensor = batch.float().mean()
        return mean * 0.01

    def _learn(self, loss: torch.Tensor, batch_idx: int) -> None:
        kind = self.program.accumulation
        self.context.backward(loss / 2 if kind.startswith("own") else loss)
        if kind == "own" and (batch_idx + 1) % 3:
            return
        if kind == "uneven" and batch_idx % 5 in {1, 2, 4}:
            return
        if kind == "own_without_zero":
            self.context.step_optimizer(self.optimizer, auto_zero_grads=False)
            if batch_idx % 2:
                self.optimizer.zero_grad()
            return
        self.context.step_optimizer(self.optimizer)

    def evaluate_batch(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        return {"error": (self.model(batch[0]) - batch[1]).abs().mean()}

    def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
        callbacks: dict[str, pytorch.PyTorchCallback] = {"plateau": _Plateau(self)}
        if self.program.further == "callback":
            callbacks["further"] = loaders.Place(self.further)
        return callbacks


class _Plateau(pytorch.PyTorchCallback):
    """Steps a scheduler by what validations found."""

    def __init__(self, trial: Generated) -> None:
        self._trial = trial

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        if self._trial.program.scheduler == "plateau" and self._trial.scheduler is not None:
            self._trial.scheduler.step(metrics["error"])


class _Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(1, 4, batch_first=True)
        self.head = nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        last: torch.Tensor = self.head(self.rnn(x.unsqueeze(-1))[0][:, -1])
        return last


def _model(kind: str) -> nn.Module:
    if kind == "recurrent":
        return _Recurrent()
    inner: dict[str, list[nn.Module]] = {
        "linear": [nn.Tanh()],
        "dropout": [nn.ReLU(), nn.Dropout(0.4)],
        "norm": [nn.LayerNorm(6), nn.ReLU()],
    }
    return nn.Sequential(nn.Linear(3, 6), *inner[kind], nn.Linear(6, 1))


def _optimizer(kind: str, model: nn.Module) -> torch.optim.Optimizer:
    parameters = model.parameters()
    made: dict[str, Any] = {
        "sgd": lambda: torch.optim.SGD(parameters, lr=0.05),
        "momentum": lambda: torch.optim.SGD(parameters, lr=0.02, momentum=0.9, nesterov=True),
        "adam": lambda: torch.optim.Adam(parameters, lr=0.01, amsgrad=True),
        "adamw": lambda: torch.optim.AdamW(parameters, lr=0.01),
        "rmsprop": lambda: torch.optim.RMSprop(parameters, lr=0.01, momentum=0.5),
        "adagrad": lambda: torch.optim.Adagrad(parameters, lr=0.05),
        "nadam": lambda: torch.optim.NAdam(parameters, lr=0.01),
    }
    optimizer: torch.optim.Optimizer = made[kind]()
    return optimizer


def _scheduler(program: Program, optimizer: Any) -> Any:
    of = torch.optim.lr_scheduler
    kind = program.scheduler or ("step" if program.forgotten == "scheduler" else "")
    if kind == "one_cycle":
        return of.OneCycleLR(optimizer, max_lr=0.1, total_steps=400, cycle_momentum=False)
    if kind == "chained":
        return of.SequentialLR(
            optimizer, [of.LinearLR(optimizer), of.CosineAnnealingLR(optimizer, 20)], milestones=[5]
        )
    if kind == "plateau":
        return of.ReduceLROnPlateau(optimizer, patience=0)
    return None if not kind else of.StepLR(optimizer, step_size=3, gamma=0.9)


def _step_mode(scheduler: str) -> StepMode:
    if scheduler == "plateau":
        return StepMode.MANUAL_STEP
    return StepMode.STEP_EVERY_EPOCH if scheduler == "epoch" else StepMode.STEP_EVERY_BATCH
