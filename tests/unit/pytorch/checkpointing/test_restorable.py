"""What no checkpoint would hold is refused at the start, or warned of by name."""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from support.training.trials import RECORDS, LineTrial, Noisy, local_context, newest_checkpoint
from torch import nn
from torch.utils.data import Sampler

from resolute import pytorch
from resolute.pytorch import Batch, LRScheduler, PyTorchCallback, PyTorchTrialContext, Trainer
from resolute.trial_errors import InvalidExperimentException


def fit(directory: Path, trial_class: type[LineTrial]) -> None:
    context, _ = local_context(directory)
    trial = trial_class(context)
    Trainer(trial, context).fit(max_length=Batch(2), checkpoint_policy="none")
    context._core.close()


def trial_with(change: Callable[[Any, PyTorchTrialContext], None]) -> type[LineTrial]:
    class Changed(LineTrial):
        def __init__(self, context: PyTorchTrialContext) -> None:
            super().__init__(context)
            change(self, context)

    return Changed


def no_model(trial: Any, context: PyTorchTrialContext) -> None:
    context.models.clear()


def no_optimizer(trial: Any, context: PyTorchTrialContext) -> None:
    context.optimizers.clear()
    context.lr_schedulers.clear()


def stray_parameters(trial: Any, context: PyTorchTrialContext) -> None:
    trial.head = nn.Linear(1, 1)
    trial.optimizer.add_param_group({"params": trial.head.parameters()})


def second_optimizer(trial: Any, context: PyTorchTrialContext) -> None:
    trial.judge = context.wrap_model(nn.Linear(1, 1))
    trial.second = torch.optim.Adam(trial.judge.parameters())


def scheduler(trial: Any, context: PyTorchTrialContext) -> None:
    trial.decay = torch.optim.lr_scheduler.StepLR(trial.optimizer, 1)


def plateau(trial: Any, context: PyTorchTrialContext) -> None:
    trial.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(trial.optimizer)


def torch_iterator(trial: Any, context: PyTorchTrialContext) -> None:
    trial.unlabelled = iter(torch.utils.data.DataLoader(Noisy()))


def held_iterator(trial: Any, context: PyTorchTrialContext) -> None:
    trial.ahead = SimpleNamespace(batches=iter(torch.utils.data.DataLoader(Noisy())))


def optimizer_in_a_list(trial: Any, context: PyTorchTrialContext) -> None:
    trial.judge = context.wrap_model(nn.Linear(1, 1))
    trial.all = {"judge": [torch.optim.Adam(trial.judge.parameters())]}


def scheduler_of_an_object(trial: Any, context: PyTorchTrialContext) -> None:
    trial.schedule = SimpleNamespace(decay=torch.optim.lr_scheduler.StepLR(trial.optimizer, 1))


def scheduler_of_a_callback(trial: Any, context: PyTorchTrialContext) -> None:
    class Decays(PyTorchCallback):
        def __init__(self) -> None:
            self.decay = torch.optim.lr_scheduler.StepLR(trial.optimizer, 1)

    trial.build_callbacks = lambda: {"decays": Decays()}


def iterator_in_a_dict(trial: Any, context: PyTorchTrialContext) -> None:
    trial.more = {"unlabelled": iter(torch.utils.data.DataLoader(Noisy()))}


def endless(trial: Any, context: PyTorchTrialContext) -> None:
    trial.endless = itertools.cycle([1, 2])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (torch_iterator, r"self\.unlabelled \(_SingleProcessDataLoaderIter\) has begun to go through data"),
        (held_iterator, r"self\.ahead\.batches \(_SingleProcessDataLoaderIter\).*StatefulDataLoader"),
        (endless, r"self\.endless \(cycle\).*disable_dataset_reproducibility_checks"),
        (iterator_in_a_dict, r"self\.more\.unlabelled \(_SingleProcessDataLoaderIter\) has begun"),
        (optimizer_in_a_list, r"self\.all\.judge\.0 \(Adam\) was not wrapped"),
        (scheduler_of_an_object, r"self\.schedule\.decay \(StepLR\) was not wrapped"),
        (scheduler_of_a_callback, r"callback 'decays'\.decay \(StepLR\) was not wrapped"),
        (no_model, "Changed has wrapped no model"),
        (no_optimizer, "Changed has wrapped no optimizer"),
        (stray_parameters, r"trains 2 parameters of self\.head that belong to no wrapped model"),
        (second_optimizer, r"self\.second \(Adam\) was not wrapped.*wrap_optimizer"),
        (scheduler, r"self\.decay \(StepLR\) was not wrapped.*wrap_lr_scheduler"),
        (plateau, r"self\.plateau \(ReduceLROnPlateau\) was not wrapped.*MANUAL_STEP"),
    ],
)
def test_what_would_be_in_no_checkpoint_is_refused_by_name(
    tmp_path: Path, change: Callable[[Any, PyTorchTrialContext], None], words: str
) -> None:
    with pytest.raises(InvalidExperimentException, match=words):
        fit(tmp_path, trial_with(change))


def test_a_trial_that_cares_for_its_data_itself_may_have_iterators(tmp_path: Path) -> None:
    def change(trial: Any, context: PyTorchTrialContext) -> None:
        context.experimental.disable_dataset_reproducibility_checks()
        endless(trial, context)

    fit(tmp_path, trial_with(change))


def test_iterators_over_parameters_are_no_data(tmp_path: Path) -> None:
    def change(trial: Any, context: PyTorchTrialContext) -> None:
        trial.named = (name for name in ("weight", "bias"))
        trial.trained = filter(lambda one: one.requires_grad, trial.named)

    fit(tmp_path, trial_with(change))


def test_an_optimizer_that_was_not_wrapped_cannot_be_stepped(tmp_path: Path) -> None:
    class Other(LineTrial):
        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            self.context.step_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))
            return {}

    with pytest.raises(InvalidExperimentException, match="a SGD that was not wrapped"):
        fit(tmp_path, Other)


def test_the_parts_of_a_wrapped_scheduler_are_saved_with_it(
    tmp_path: Path,
) -> None:
    class Composed(LineTrial):
        def __init__(self, context: PyTorchTrialContext) -> None:
            super().__init__(context)
            of = torch.optim.lr_scheduler
            self.warm = of.LinearLR(self.optimizer)
            self.cool = of.CosineAnnealingLR(self.optimizer, 9)
            whole = of.SequentialLR(self.optimizer, [self.warm, self.cool], milestones=[3])
            context.wrap_lr_scheduler(whole, LRScheduler.StepMode.STEP_EVERY_BATCH)

    fit(tmp_path, Composed)


def test_state_that_changes_and_is_in_no_checkpoint_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Counts(PyTorchCallback):
        best = 0.0

        def __init__(self) -> None:
            self.best = 0.0
            self.constant = 5

        def on_training_epoch_start(self, epoch_idx: int) -> None:
            self.best += 1

    class Kept(Counts):
        def state_dict(self) -> dict[str, Any]:
            return {"best": self.best}

    class Counting(LineTrial):
        def __init__(self, context: PyTorchTrialContext) -> None:
            super().__init__(context)
            self.steps, self.constant, self.order = 0, 3, iter(range(9))

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            self.steps += 1
            return super().train_batch(batch, epoch_idx, batch_idx)

        def build_callbacks(self) -> dict[str, PyTorchCallback]:
            return {"counts": Counts(), "kept": Kept()}

    with caplog.at_level(logging.WARNING):
        fit(tmp_path, Counting)
    (line,) = [record.message for record in caplog.records if "a pause forgets" in record.message]
    assert "changed while training: callback 'counts'.best, self.order, self.seen, self.steps. Keep" in line


def test_a_module_that_was_not_wrapped_is_warned_of_unless_it_is_frozen(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def with_modules(trial: Any, context: PyTorchTrialContext) -> None:
        trial.average = torch.optim.swa_utils.AveragedModel(trial.model)
        trial.teacher = nn.Linear(2, 1).requires_grad_(False)

    with caplog.at_level(logging.WARNING):
        fit(tmp_path, trial_with(with_modules))
    warned = [record.message for record in caplog.records if "was not wrapped" in record.message]
    assert [line.partition(" ")[0] for line in warned] == ["self.average"]


def test_a_sampler_that_follows_from_training_is_warned_of_when_it_deals_other_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class ByLuck(Sampler[int]):
        def __len__(self) -> int:
            return RECORDS

        def __iter__(self) -> Any:
            return iter(random.SystemRandom().sample(range(RECORDS), RECORDS))

    class Lucky(LineTrial):
        def build_training_data_loader(self) -> pytorch.DataLoader:
            return pytorch.DataLoader(Noisy(), batch_size=8, sampler=ByLuck())

    fit(tmp_path, Lucky)
    context, _ = local_context(tmp_path)
    trial = Lucky(context)
    with caplog.at_level(logging.WARNING):
        Trainer(trial, context).fit(
            max_length=Batch(4), latest_checkpoint=newest_checkpoint(tmp_path), checkpoint_policy="none"
        )
    context._core.close()
    assert "ByLuck deals other records than before the pause" in caplog.text
