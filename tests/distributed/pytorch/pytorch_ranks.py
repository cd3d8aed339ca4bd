"""Run by torchrun or horovodrun: what two ranks do must be right, also when they are stopped and continue.

Arguments: a directory, and the backend.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch
from support.training.ranks.processes import VARIABLES, joined
from support.training.trials import (
    LineTrial,
    equal,
    local_context,
    newest_checkpoint,
    same,
    state_of,
    weights,
)

from resolute import core, pytorch
from resolute.pytorch import Batch, Epoch, Trainer
from resolute.pytorch.backends.random_state import seed_all
from resolute.testing import simulate_preemption

HERE, BACKEND = Path(sys.argv[1]), sys.argv[2]


def train(
    name: str, distributed: Any, *, trial_class: Any = LineTrial, aggregation: int = 1, **options: Any
) -> Any:
    context, recorder = local_context(HERE / name, distributed=distributed, aggregation_frequency=aggregation)
    seed_all(55 + distributed.rank + options.pop("disturb", 0))
    trial = trial_class(context)
    seed_all(75 + distributed.rank)
    options = {
        "validation_period": Batch(3),
        "reporting_period": Batch(2),
        "checkpoint_policy": "none",
        **options,
    }
    Trainer(trial, context).fit(**options)
    trial.state = state_of(trial)
    return trial, recorder.reports


def resumes_exactly(distributed: Any, aggregation: int) -> None:
    name = f"aggregation{aggregation}"
    whole, reports = train(f"whole-{name}", distributed, aggregation=aggregation, max_length=Batch(14))
    with simulate_preemption() as signal:
        signal._after_checks = 10**9

        class Stopping(LineTrial):
            def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
                if batch_idx == 4 and distributed.rank == 0:
                    signal.request()  # only the chief sees it; all must stop after the same batch
                return super().train_batch(batch, epoch_idx, batch_idx)

        stopped, before = train(
            f"parts-{name}", distributed, trial_class=Stopping, aggregation=aggregation, max_length=Batch(14)
        )
    steps = distributed.allgather(len(stopped.seen))
    assert steps[0] == steps[1] < 14, steps
    checkpoint = newest_checkpoint(HERE / f"parts-{name}")
    resumed, after = train(
        f"parts-{name}",
        distributed,
        aggregation=aggregation,
        max_length=Batch(14),
        latest_checkpoint=checkpoint,
        disturb=5,
    )
    assert resumed.seen[0] == steps[0]
    if distributed.rank == 0:  # running statistics of normalisation are the chief's
        assert same(weights(resumed), weights(whole))
    assert equal(resumed.state, whole.state)  # on every rank, random numbers too
    gathered = distributed.allgather([p.tolist() for p in resumed.model.parameters()])
    assert gathered[0] == gathered[1], "the ranks have different weights"
    assert before + after == reports, (before, after, reports)


class Plain(LineTrial):
    """Without anything random, so that two ranks compute what one does."""

    def __init__(self, context: Any) -> None:
        self.context = context
        torch.manual_seed(3)
        self.model = context.wrap_model(torch.nn.Linear(2, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.05))
        self.absolute = context.wrap_reducer(sum, name="absolute", for_validation=False)
        self.seen = []

    def build_training_data_loader(self) -> pytorch.DataLoader:
        x = torch.arange(80, dtype=torch.float32).reshape(40, 2) / 80
        data = torch.utils.data.TensorDataset(x, x.sum(dim=1, keepdim=True))
        return pytorch.DataLoader(data, batch_size=self.context.get_per_slot_batch_size())

    build_validation_data_loader = build_training_data_loader


def equals_one_rank(distributed: Any) -> None:
    together, reports = train("together", distributed, trial_class=Plain, max_length=Epoch(2))
    if distributed.rank == 0:
        os.environ.pop(VARIABLES[BACKEND])
        alone, expected = train(
            "alone", core.DummyDistributedContext(), trial_class=Plain, max_length=Epoch(2)
        )
        os.environ[VARIABLES[BACKEND]] = "true"
        for one, two in zip(weights(alone), weights(together), strict=True):
            assert torch.allclose(one, two, atol=1e-6)
        validations = [
            [metrics["validation_loss"] for group, _, metrics in of if group == "validation"]
            for of in (reports, expected)
        ]
        ours, theirs = map(torch.tensor, validations)
        assert torch.allclose(ours, theirs, atol=1e-6)


class Whole(Plain):
    """Evaluates on the chief alone, with a model whose buffers are exchanged."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.norm = context.wrap_model(torch.nn.BatchNorm1d(2))

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        x, y = batch
        return super().train_batch((self.norm(x), y), epoch_idx, batch_idx)

    evaluate_batch = pytorch.PyTorchTrial.evaluate_batch  # type: ignore[assignment]

    def evaluate_full_dataset(self, data_loader: Any) -> dict[str, Any]:
        assert self.context.distributed.rank == 0
        return {"total": sum(self.model(self.norm(x)).sum().item() for x, _ in data_loader)}


class Compressed(Plain):
    """Exchanges gradients in half precision, as a config may ask for."""

    def __init__(self, context: Any) -> None:
        context._compress_gradients = True
        super().__init__(context)


def compresses(distributed: Any) -> None:
    (compressed, _), (exact, _) = (
        train(kind.__name__, distributed, trial_class=kind, max_length=Epoch(2))
        for kind in (Compressed, Plain)
    )
    for one, two in zip(weights(compressed), weights(exact), strict=True):
        assert not torch.equal(one, two)
        assert torch.allclose(one, two, atol=1e-2)


def main() -> None:
    with joined(BACKEND) as distributed:
        resumes_exactly(distributed, 1)
        resumes_exactly(distributed, 2)
        equals_one_rank(distributed)
        train("full", distributed, trial_class=Whole, max_length=Batch(6))
        if BACKEND == "horovod":
            compresses(distributed)
        (HERE / f"passed-{distributed.rank}").touch()


main()
