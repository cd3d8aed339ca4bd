"""Run by torchrun: what the page shows of local training with several ranks."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import torch
from support.training.trials import LineTrial

from resolute import core, pytorch

PAGE = Path(__file__).resolve().parents[3] / "docs" / "pytorch.md"


def train(context: pytorch.PyTorchTrialContext) -> None:
    context._per_slot_batch_size = 4
    trial = LineTrial(context)
    pytorch.Trainer(trial, context).fit(max_length=pytorch.Epoch(1), checkpoint_policy="none")
    weights = [parameter.detach() for parameter in trial.model.parameters()]
    torch.save(weights, Path(sys.argv[1]) / f"weights-{context.distributed.rank}.pt")


def main() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if "init_process_group" in block]
    names: dict[str, Any] = {"torch": torch, "os": os, "core": core, "pytorch": pytorch}
    exec(block.replace("    ...\n", "    train(context)\n"), {**names, "train": train})
    torch.distributed.destroy_process_group()


main()
