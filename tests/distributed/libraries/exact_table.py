"""Run by torchrun: Hugging Face's ``Trainer`` with DeepSpeed, for one row of the table of the docs."""

from __future__ import annotations

import dataclasses
import sys
from functools import partial
from pathlib import Path

import torch.distributed as dist
from support.training.exactness import PROGRAMS, WITH_DEEPSPEED, table
from support.training.integrations import BATCHES, train_by_transformers
from support.training.pauses import Run, Training, train_in_parts
from support.training.trials import equal

PAUSE = BATCHES + 2
"""In the second epoch, where all that is not exact has gone another way."""


def main(directory: Path, stage: int, row: str) -> None:
    dist.init_process_group(backend="gloo")
    for number, program in enumerate(PROGRAMS[row]):
        training: Training = partial(train_by_transformers, dataclasses.replace(program, zero=stage))
        whole = training(Run(directory / f"whole-{number}"))
        parts = train_in_parts(training, directory / f"parts-{number}", [PAUSE])
        assert equal(parts, whole) == (table()[row, WITH_DEEPSPEED] == "exact"), (program, stage)
    (directory / f"passed-{dist.get_rank()}").touch()
    dist.destroy_process_group()


main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
