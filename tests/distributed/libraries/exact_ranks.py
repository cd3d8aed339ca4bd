"""Run by torchrun: two ranks of another library are paused, and end as those that were not."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import torch.distributed as dist
from support.training.integrations import (
    Program,
    train_by_accelerate,
    train_by_lightning,
    train_by_transformers,
)
from support.training.pauses import Run, Training, train_in_parts
from support.training.trials import equal

HERE = Path(sys.argv[1])
# The ranks agree on the step after which they stop, which is some steps after the request.
EPOCHS = 6
DATA_PARALLEL = [
    Program(epochs=EPOCHS),
    Program(epochs=EPOCHS, accumulation=2),
    Program("set_epoch", epochs=EPOCHS),
    Program("numpy", epochs=EPOCHS),
    Program(epochs=EPOCHS, noise="global", workers=2),
]
KEPT_BY_TRANSFORMERS = DATA_PARALLEL[:3]


def zero(stage: int) -> list[Program]:
    """The programs of a stage of ZeRO."""
    return [
        Program(epochs=EPOCHS, zero=stage),
        Program(epochs=EPOCHS, zero=stage, accumulation=2),
    ]


TRAININGS = {
    "lightning": (train_by_lightning, DATA_PARALLEL),
    "accelerate": (train_by_accelerate, DATA_PARALLEL),
    "hugging_face": (train_by_transformers, KEPT_BY_TRANSFORMERS),
    **{f"hugging_face_zero_{stage}": (train_by_transformers, zero(stage)) for stage in (1, 2, 3)},
}


def main(name: str, pause: int) -> None:
    dist.init_process_group(backend="gloo")
    train, programs = TRAININGS[name]
    for number, program in enumerate(programs):
        training: Training = partial(train, program)
        whole = training(Run(HERE / f"whole-{number}"))
        parts = train_in_parts(training, HERE / f"parts-{number}", [pause])
        assert equal(parts, whole), (program, pause)
    (HERE / f"passed-{dist.get_rank()}").touch()
    dist.destroy_process_group()


main(sys.argv[2], int(sys.argv[3]))
