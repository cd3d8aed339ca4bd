"""State that a trial changes while training: a pause keeps it, or a warning says by name that it does not."""

from __future__ import annotations

import collections
import copy
import itertools
import logging
import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from support.training.pauses import Run, train_in_parts
from support.training.trials import LineTrial, Noisy, equal, local_context, state_of
from torch import nn
from torch.nn.utils import prune
from torch.utils.data import DataLoader, Dataset, IterableDataset

from resolute import pytorch
from resolute.pytorch import Batch, PyTorchCallback, PyTorchTrialContext, Trainer

BATCHES = 12
EPOCH = 5
Change = Callable[[Any], object]


class Shared:
    """As a module may have one, for all that it needs of random numbers."""

    generator = random.Random()


def shaken(x: torch.Tensor) -> torch.Tensor:
    """A function that a trial calls, which draws from what its module has."""
    return x + Shared.generator.random()


class Slotted:
    __slots__ = ("generator",)

    def __init__(self, seed: int) -> None:
        self.generator = random.Random(seed)


class NoisyLayer(nn.Module):
    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        self.temperature = 1.0
        self.scale = nn.Buffer(torch.ones(1), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        noisy: torch.Tensor = x + torch.rand(x.shape, generator=self.generator) * self.temperature
        return noisy * self.scale


class OftenChanged(LineTrial):
    """Draws from generators wherever they may be, and unfreezes a layer when the second epoch begins."""

    process = 0

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        self.layer = context.wrap_model(nn.Sequential(nn.Linear(1, 1), NoisyLayer(self.process)))
        self.layer[0].requires_grad_(False)
        self.bits = np.random.PCG64(self.process)
        self.queue = collections.deque([{"generator": np.random.default_rng(self.process)}])
        self.slotted = Slotted(self.process)
        self.of_the_system = random.SystemRandom()
        Shared.generator.seed(self.process)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        x, y = batch
        weight = self.bits.random_raw() % 7 + self.queue[0]["generator"].random()
        weight += self.slotted.generator.random()
        loss = ((self.layer(self.model(shaken(x))) - y) ** 2).mean() * weight / 8
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        self.absolute.update(1.0)
        return {"loss": loss}

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        return {"drawing": Drawing(self)}


class Drawing(PyTorchCallback):
    def __init__(self, trial: OftenChanged) -> None:
        self.trial = trial
        self.generator = random.Random(trial.process)

    def on_training_epoch_start(self, epoch_idx: int) -> None:
        optimizer = self.trial.optimizer
        optimizer.param_groups[0]["lr"] = self.generator.random() / 20
        if epoch_idx == 1:
            self.trial.layer[0].requires_grad_(True)
            optimizer.add_param_group({"params": list(self.trial.layer[0].parameters()), "lr": 0.01})


def train(trial_class: type[LineTrial], run: Run) -> tuple[Any, list[Any]]:
    made = type(trial_class.__name__, (trial_class,), {"process": run.process})
    with run.begun() as trained:
        context, _ = local_context(run.directory)
        trial = made(context)
        step = trial.train_batch

        def train_batch(batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            returned = step(batch, epoch_idx, batch_idx)
            trained(batch_idx + 1)
            return returned

        trial.train_batch = train_batch
        Trainer(trial, context).fit(
            max_length=Batch(BATCHES), latest_checkpoint=run.checkpoint, checkpoint_policy="none"
        )
    context._core.close()
    return state_of(trial), []


def test_generators_anywhere_and_what_is_trained_are_as_they_were_after_a_pause(tmp_path: Path) -> None:
    training = partial(train, OftenChanged)
    whole = training(Run(tmp_path / "whole"))
    for pauses in ([2], [EPOCH], [3, EPOCH + 2]):
        parts = train_in_parts(training, tmp_path / str(pauses), pauses)
        assert equal(parts, whole), pauses


def counts(trial: Any) -> object:
    trial.counts = np.int64(1 if not hasattr(trial, "counts") else trial.counts + 1)
    return trial.counts


CHANGES: dict[str, tuple[Change, Change]] = {
    "self.shadow": (
        lambda trial: setattr(trial, "shadow", {"weight": torch.zeros(20_000)}),
        lambda trial: trial.shadow["weight"].add_(1),
    ),
    "self.average.value": (
        lambda trial: setattr(trial, "average", SimpleNamespace(value=1.0)),
        lambda trial: setattr(trial.average, "value", 0.5),
    ),
    "self.recent": (
        lambda trial: setattr(trial, "recent", collections.deque(maxlen=2)),
        lambda trial: trial.recent.append(torch.ones(1)),
    ),
    "self.weights": (
        lambda trial: setattr(trial, "weights", np.ones(5)),
        lambda trial: trial.weights.__setitem__(1, 0.5),
    ),
    "self.counts": (counts, counts),
    "self.phase": (
        lambda trial: setattr(trial, "phase", "warm-up"),
        lambda trial: setattr(trial, "phase", "training"),
    ),
    "self.prompt": (
        lambda trial: setattr(trial, "prompt", nn.Parameter(torch.zeros(3))),
        lambda trial: trial.prompt.data.add_(1),
    ),
    "self.teacher.weight": (
        lambda trial: setattr(trial, "teacher", copy.deepcopy(nn.Linear(2, 1)).requires_grad_(False)),
        lambda trial: trial.teacher.weight.mul_(0.9),
    ),
    "self.normalized.running_mean": (
        lambda trial: setattr(trial, "normalized", nn.BatchNorm1d(1, affine=False)),
        lambda trial: trial.normalized(torch.ones(2, 1)),
    ),
    "self.model.2.p": (lambda _: None, lambda trial: setattr(trial.model[2], "p", 0.1)),
    "self.noise.temperature": (
        lambda trial: setattr(trial, "noise", trial.context.wrap_model(NoisyLayer(1))),
        lambda trial: setattr(trial.noise, "temperature", 0.5),
    ),
    "self.noise.scale": (
        lambda trial: setattr(trial, "noise", trial.context.wrap_model(NoisyLayer(1))),
        lambda trial: trial.noise.scale.mul_(0.5),
    ),
    "self.scaler": (
        lambda trial: setattr(trial, "scaler", torch.amp.GradScaler("cpu")),
        lambda trial: [trial.scaler.scale(torch.ones(1)), trial.scaler.update(0.5)],
    ),
    "self.second": (
        lambda trial: setattr(trial, "second", torch.optim.SGD(trial.model.parameters(), momentum=0.9)),
        lambda trial: [trial.model(torch.ones(2, 2)).sum().backward(), trial.second.step()],
    ),
    "self.more": (
        lambda trial: setattr(trial, "more", []),
        lambda trial: trial.more or trial.more.append(iter(DataLoader(Noisy()))),
    ),
    "self.seeds": (
        lambda trial: setattr(trial, "seeds", np.random.SeedSequence(1)),
        lambda trial: trial.seeds.spawn(1),
    ),
    "self.of_the_system": (
        lambda trial: setattr(trial, "of_the_system", random.SystemRandom()),
        lambda _: None,
    ),
    "self.last": (lambda _: None, lambda trial: setattr(trial, "last", 0.5)),
}


def changing(start: Change, change: Change) -> type[LineTrial]:
    class Changing(LineTrial):
        def __init__(self, context: PyTorchTrialContext) -> None:
            super().__init__(context)
            start(self)
            del self.seen  # which changes too

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            change(self)
            self.absolute.update(1.0)
            return {}

    return Changing


def fit(directory: Path, trial_class: type[LineTrial], **options: Any) -> None:
    context, _ = local_context(directory)
    options = {"max_length": Batch(2), "checkpoint_policy": "none", **options}
    Trainer(trial_class(context), context).fit(**options)
    context._core.close()


def warnings_of(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if words in record.getMessage()]


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_and_is_in_no_checkpoint_is_warned_of_by_name(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fit(tmp_path, changing(*CHANGES[name]))
    (line,) = warnings_of(caplog, "a pause forgets")
    named = line.split("changed while training: ")[1].split(". Keep")[0].split(", ")
    assert name in named
    assert all(one.startswith(name.rpartition(".")[0] or name) for one in named)


class ClosedFile(Mapping[str, Any]):
    """As a file of arrays is after its end."""

    def __getitem__(self, name: str) -> Any:
        raise ValueError("the file is closed")

    def __len__(self) -> int:
        raise ValueError("the file is closed")

    def __iter__(self) -> Iterator[str]:
        raise ValueError("the file is closed")


def test_what_does_not_let_itself_be_looked_at_ends_no_training_and_hides_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def start(trial: Any) -> None:
        trial.file, trial.flipped = ClosedFile(), np.arange(5)[::-1]
        trial.of_another_machine, trial.words = np.zeros(2, dtype=">f4"), np.array(["a", "b"])

    def change(trial: Any) -> None:
        trial.flipped[0] = trial.of_another_machine[0] = -1
        trial.words[0] = "c"

    fit(tmp_path, changing(start, change))
    (line,) = warnings_of(caplog, "a pause forgets")
    assert "changed while training: self.flipped, self.of_another_machine, self.words. Keep" in line


def test_what_does_not_change_or_is_kept_is_not_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Keeps(PyTorchCallback):
        def __init__(self, trial: Any) -> None:
            self.trial = trial

        def state_dict(self) -> dict[str, Any]:
            return {"shadow": self.trial.shadow}

    class Kept(changing(lambda _: None, lambda trial: trial.shadow[0].add_(1))):  # type: ignore[misc]
        def __init__(self, context: PyTorchTrialContext) -> None:
            super().__init__(context)
            self.shadow = [torch.zeros(3)]
            self.all = list(self.model.parameters())
            self.recurrent = context.wrap_model(nn.GRU(1, 1))  # torch has a list of its weights
            self.nan, self.names = float("nan"), {"a", "b"}

        def build_callbacks(self) -> dict[str, PyTorchCallback]:
            return {"keeps": Keeps(self)}

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            for parameter in (*self.all, *self.recurrent.parameters()):
                parameter.data.add_(1)
            returned: dict[str, Any] = super().train_batch(batch, epoch_idx, batch_idx)
            return returned

    fit(tmp_path, Kept)
    assert warnings_of(caplog, "a pause forgets") == []


def test_what_changes_after_the_first_checkpoint_is_warned_of_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    calls = itertools.count()
    trial_class = changing(counts, lambda trial: next(calls) < 2 or counts(trial))
    fit(tmp_path, trial_class, max_length=Batch(4), checkpoint_period=Batch(1))
    assert len(warnings_of(caplog, "self.counts")) == 1


def test_a_model_whose_state_gets_other_names_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def change(trial: Any) -> None:
        if not hasattr(trial.model[0], "weight_orig"):
            prune.l1_unstructured(trial.model[0], "weight", 0.3)  # type: ignore[no-untyped-call]

    fit(tmp_path, changing(lambda _: None, change))
    (line,) = warnings_of(caplog, "other names than before")
    assert "0.weight, 0.weight_mask, 0.weight_orig" in line


SEEN: list[float] = []


def warming_up(epoch: int) -> float:
    """A function with an attribute of its own."""
    warming_up.calls += 1  # type: ignore[attr-defined]
    return 1.0


def counting(rates: list[float]) -> Callable[[int], float]:
    """Returns a function with a variable of the function around it."""

    def rate(_: int) -> float:
        rates.append(1.0 / (1 + len(rates)))
        return rates[-1]

    return rate


def noting(_: int) -> float:
    """A function that changes what its module has."""
    SEEN.append(1.0)
    return 1.0 / len(SEEN)


class Decay:
    def __init__(self) -> None:
        self.factor = 1.0

    def __call__(self, _: int) -> float:
        self.factor *= 0.9
        return self.factor


def pure(base: float) -> Callable[[int], float]:
    return lambda step: base**step


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: counting([]), "rates in counting.<locals>.rate"),
        (lambda: warming_up, "warming_up.calls"),
        (lambda: noting, f"{__name__}.SEEN"),
        (lambda: Decay().__call__, "LambdaLR.lr_lambdas.0.factor"),
        (
            lambda: partial(lambda counts, _: counts.update([1]) or 1.0, collections.Counter()),
            "LambdaLR.lr_lambdas.0",
        ),
        (Decay, ""),  # torch keeps the attributes of such
        (lambda: pure(0.9), ""),
    ],
)
def test_what_the_function_of_a_scheduler_remembers_is_warned_of(
    make: Any, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Scheduled(LineTrial):
        def __init__(self, context: PyTorchTrialContext) -> None:
            super().__init__(context)
            del self.seen
            warming_up.calls = 0  # type: ignore[attr-defined]
            scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, make())
            context.wrap_lr_scheduler(scheduler, pytorch.LRScheduler.StepMode.STEP_EVERY_BATCH)

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            self.context.step_optimizer(self.optimizer)
            self.absolute.update(1.0)
            return {}

    fit(tmp_path, Scheduled)
    lines = warnings_of(caplog, "a pause forgets")
    assert [f"changed while training: {name}. Keep" in line for line in lines] == [True] * bool(name)


class Remembering(Dataset[Any]):
    """Keeps, of the records that it has read, what is named."""

    def __init__(self, kept: str) -> None:
        self._kept = kept
        self.cache: dict[int, float] = {}
        self.recent: list[float] = []
        self.table = torch.full((8,), torch.nan)
        self.count = 0

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        noise = random.random() if self._kept != "values" else 0.5
        if self._kept in {"cache", "values"}:
            noise = self.cache.setdefault(index, noise)
        elif self._kept == "recent":
            self.recent = [*self.recent[-2:], noise]
        elif self._kept == "table":
            self.table[index] = noise
        elif self._kept == "count":
            self.count += 1
        return torch.full((1,), index + noise), torch.zeros(1)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kept", ["cache", "recent", "table", "count", "values", "nothing"])
def test_what_a_data_set_remembers_of_its_records_is_warned_of(
    kept: str, workers: int, tmp_path: Path
) -> None:
    class Reading(LineTrial):
        def build_training_data_loader(self) -> Any:
            del self.seen
            return pytorch.DataLoader(Remembering(kept), batch_size=2, shuffle=True, num_workers=workers)

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            self.absolute.update(1.0)
            return {}

    # Workers are other processes.
    handler = logging.FileHandler(tmp_path / "log")
    logging.getLogger("resolute.pytorch").addHandler(handler)
    try:
        fit(tmp_path, Reading)
    finally:
        logging.getLogger("resolute.pytorch").removeHandler(handler)
        handler.close()
    lines = [line for line in (tmp_path / "log").read_text().splitlines() if "a pause forgets" in line]
    if kept in {"values", "nothing"}:
        assert lines == []
    else:
        (line,) = lines
        at_checkpoint = kept in {"count", "table"} and not workers
        assert (f": the training data.{kept}. Keep" if at_checkpoint else f"were read: {kept}. Let") in line


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return (Noisy()[index] for index in range(8))

    def __len__(self) -> int:
        return 8


@pytest.mark.parametrize("asks", [False, True])
def test_a_loader_that_nobody_tells_where_to_begin_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, asks: bool
) -> None:
    class Unskipped(LineTrial):
        def build_training_data_loader(self) -> Any:
            self.context.experimental.disable_dataset_reproducibility_checks()
            if asks:
                self.context.get_initial_batch()
            return DataLoader(Endless(), batch_size=2)

    fit(tmp_path, Unskipped)
    found = warnings_of(caplog, "begins with its first batch after a pause")
    assert len(found) == (not asks)


@pytest.mark.parametrize("argument", ["sampler", "batch_sampler"])
def test_a_sampler_that_ends_after_one_pass_is_refused(argument: str) -> None:
    given: Any = (index for index in range(3))
    with pytest.raises(ValueError, match=rf"{argument} is a generator, which ends after one pass"):
        pytorch.DataLoader(Noisy(), **{argument: given})
