"""Run by torchrun: two ranks of another library stop after the same step, and go on from what they saved."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch.distributed as dist
from lightning.pytorch import Callback
from support.training.lightning_modules import Line, loader, trainer
from support.training.transformers_models import arguments, make_trainer
from support.training.trials import newest_checkpoint, weights_of
from transformers import TrainerCallback

from resolute import core
from resolute.lightning import ResoluteCallback
from resolute.testing import SimulatedPreemption, simulate_preemption
from resolute.transformers import ResoluteCallback as TransformersCallback

HERE = Path(sys.argv[1])
EPOCHS = 6
STEPS = 3
"""Of an epoch of a rank: half of five, rounded up."""
NEVER = 10**9
REQUEST_AFTER = 2
"""The step after which the chief, and nobody else, sees the signal."""


class Requests:
    """Sends the signal before a step.

    Args:
        signal: What is sent; None for nothing.
    """

    def __init__(self, signal: SimulatedPreemption | None) -> None:
        self._signal = signal
        self._steps = 0

    def step(self) -> None:
        if self._signal is not None and self._steps == REQUEST_AFTER:
            self._signal.request()
        self._steps += 1


class LightningRequests(Requests, Callback):  # type: ignore[misc, unused-ignore]
    def on_train_batch_start(self, *args: Any) -> None:
        self.step()


class TrainerRequests(Requests, TrainerCallback):  # type: ignore[misc, unused-ignore]
    def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
        self.step()


def by_lightning(context: core.Context, latest: str | None, signal: Any) -> tuple[int, Any]:
    module, callback = Line(), ResoluteCallback(context, latest_checkpoint=latest)
    running = trainer(LightningRequests(signal), callback, max_epochs=EPOCHS, devices=2, strategy="ddp")
    running.fit(module, loader(), loader(), ckpt_path=callback.checkpoint_path)
    return callback.batches, module


def by_hugging_face(context: core.Context, latest: str | None, signal: Any) -> tuple[int, Any]:
    output = HERE / "output"
    args = arguments(output, num_train_epochs=EPOCHS, ddp_backend="gloo", eval_strategy="no")
    running = make_trainer(args, TrainerRequests(signal), TransformersCallback(context, args))
    if latest is not None:
        context.checkpoint.download(latest, output)
    running.train(resume_from_checkpoint=latest is not None)
    return running.state.global_step, running.model


LIBRARIES = {"lightning": by_lightning, "hugging_face": by_hugging_face}


def main(name: str) -> None:
    dist.init_process_group(backend="gloo")
    distributed = core.DistributedContext.from_torch_distributed()
    train, storage = LIBRARIES[name], HERE / "checkpoints"
    with (
        simulate_preemption(after_checks=NEVER) as signal,
        core.init(distributed=distributed, checkpoint_storage=str(storage)) as context,
    ):
        stopped, _ = train(context, None, signal if distributed.rank == 0 else None)
        assert signal.acknowledged
        assert distributed.allgather(stopped) == [stopped, stopped]
        signal.withdraw()
        done, model = train(context, newest_checkpoint(storage), None)
        assert REQUEST_AFTER < stopped < done == EPOCHS * STEPS, (stopped, done)
        one, other = distributed.allgather([tensor.tolist() for tensor in weights_of(model)])
        assert one == other, "the ranks have different weights"
    (HERE / f"passed-{distributed.rank}").touch()


main(sys.argv[2])
