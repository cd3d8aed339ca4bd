"""The table of the docs of what trainings of other libraries keep over a pause after any batch."""

from __future__ import annotations

import re
from pathlib import Path

from support.training.integrations import Program

PAGE = Path(__file__).parents[3] / "docs" / "integrations.md"
WITH_DEEPSPEED = "the same with DeepSpeed"
"""The column that `make distributed` holds true."""
PROGRAMS = {
    "weights, optimizer, scheduler, random numbers of training, `shuffle=True`": [Program()],
    "gradients that wait for a step": [Program(accumulation=2)],
    "a sampler that has `set_epoch`": [Program("set_epoch")],
    "a sampler that draws from `random`, `numpy.random` or `torch`": [Program("python"), Program("numpy")],
    "a sampler with a generator of its own": [Program("other_generator_each_run")],
    "a sampler that counts its passes": [Program("counting")],
    "what a data set draws while records are read": [Program(noise="global")],
    "the same in workers": [Program(noise="global", workers=2)],
    "a data set with a generator of its own": [Program(noise="own_python")],
}
"""What is trained for each row."""


def table() -> dict[tuple[str, str], str]:
    """What the page says, by row and library."""
    section = PAGE.read_text().split("## What a pause keeps")[1].split("\n## ")[0]
    head, _, *rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    return {(row[0], name): cell for row in rows for name, cell in zip(head[1:], row[1:], strict=True)}
