"""Run by torchrun or horovodrun: options of what exchanges gradients, and what is said where one is missing.

Arguments: a directory, the backend, and what two ranks do: `pass` options on, or `forget` one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from support.training.ranks.processes import joined
from support.training.trials import local_context, same, weights_of
from torch import nn

from resolute import pytorch
from resolute.pytorch import Batch, Trainer
from resolute.trial_errors import InvalidExperimentException

HERE, BACKEND, CASE = Path(sys.argv[1]), *sys.argv[2:]
BATCHES = 3


class TwoHeads(nn.Module):
    """A model of which a batch need not use all."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(1, 1), nn.Linear(1, 1)

    def forward(self, x: torch.Tensor, *, both: bool) -> torch.Tensor:
        y: torch.Tensor = self.one(x)
        return y + self.other(x) if both else y


class HeadsTrial(pytorch.PyTorchTrial):
    """The chief uses one head in some batches, the other rank both in all."""

    def __init__(
        self, context: Any, *, left_out: Any = (), ddp: Any = None, horovod: Any = None, lr: float = 0.1
    ) -> None:
        self.context, self.left_out = context, left_out
        torch.manual_seed(3)
        self.model = context.wrap_model(TwoHeads(), ddp_options=ddp)
        optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.optimizer = context.wrap_optimizer(optimizer, horovod_options=horovod)

    def build_training_data_loader(self) -> pytorch.DataLoader:
        records = torch.utils.data.TensorDataset(torch.arange(40.0).reshape(40, 1) / 40)
        return pytorch.DataLoader(records, batch_size=4)

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        both = self.context.distributed.rank == 1 or batch_idx not in self.left_out
        loss = self.model(batch[0], both=both).pow(2).mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:  # type: ignore[override]  # the older form
        return {"output": self.model(batch[0], both=True).mean()}


def train(distributed: Any, name: str, **options: Any) -> list[torch.Tensor]:
    """Trains and validates; returns the weights."""
    context, _ = local_context(HERE / name, distributed=distributed)
    trial = HeadsTrial(context, **options)
    Trainer(trial, context).fit(max_length=Batch(BATCHES), validation_period=Batch(BATCHES))
    return weights_of(trial.model)


def pass_torch(distributed: Any) -> None:
    """Options of DistributedDataParallel arrive there."""
    unused = train(distributed, "unused", left_out=range(BATCHES), ddp={"find_unused_parameters": True})
    assert len(set(map(str, distributed.allgather([w.tolist() for w in unused])))) == 1
    plain = train(distributed, "plain")
    assert same(train(distributed, "static", ddp={"static_graph": True}), plain)
    assert not same(unused, plain)


def pass_horovod(distributed: Any) -> None:
    """Options of DistributedOptimizer arrive there: a sum of gradients is twice their average."""
    import horovod.torch as hvd

    summed = train(distributed, "sum", horovod={"op": hvd.Sum, "num_groups": 1}, lr=0.05)
    for one, two in zip(summed, train(distributed, "average"), strict=True):
        assert torch.allclose(one, two, atol=1e-6)
    with pytest.raises(InvalidExperimentException, match="op=Adasum"):
        train(distributed, "adasum", horovod={"op": hvd.Adasum})


def forget_torch(distributed: Any) -> None:
    """A parameter that one rank alone does not use, in the last batch before a validation, is an error there.

    The other rank waits for its gradient, until this one ends.
    """
    with pytest.raises(RuntimeError) as failure:
        train(distributed, "forgotten", left_out=[BATCHES - 1])
    way = 'context.wrap_model(model, ddp_options={"find_unused_parameters": True})'
    assert distributed.rank == 1 or way in str(failure.value)
    (HERE / f"passed-{distributed.rank}").touch()
    os._exit(0)


with joined(BACKEND) as together:
    globals()[f"{CASE}_{BACKEND}"](together)
    (HERE / f"passed-{together.rank}").touch()
