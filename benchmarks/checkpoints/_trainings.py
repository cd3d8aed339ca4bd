"""Small real trainings on handwritten digits, and the checkpoints that they write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from torch import nn

EPOCHS = 5
_BATCH = 128
_UNITS = 1024
Writer = Callable[[Path, nn.Sequential, torch.optim.Optimizer], None]


def _one_file(folder: Path, model: nn.Sequential, optimizer: torch.optim.Optimizer) -> None:
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder / "state.pt")


def _safetensors(folder: Path, model: nn.Sequential, optimizer: torch.optim.Optimizer) -> None:
    save_file(model.state_dict(), folder / "model.safetensors")
    torch.save(optimizer.state_dict(), folder / "optimizer.pt")


def _apart(folder: Path, model: nn.Sequential, optimizer: torch.optim.Optimizer) -> None:
    torch.save(model[:-1].state_dict(), folder / "backbone.pt")
    torch.save({"head": model[-1].state_dict(), "optimizer": optimizer.state_dict()}, folder / "head.pt")


TRAININGS: dict[str, tuple[bool, Writer]] = {
    "all weights, one file of torch.save": (False, _one_file),
    "all weights, safetensors and torch.save": (False, _safetensors),
    "frozen backbone, one file of torch.save": (True, _one_file),
    "frozen backbone, a file of its own": (True, _apart),
}
"""Whether the backbone is frozen, and how files are written."""


def train(name: str, folder: Path) -> Iterator[Path]:
    """Trains with Adam and writes a checkpoint after each epoch; gives the directory of each."""
    frozen, write = TRAININGS[name]
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(64, _UNITS),
        nn.ReLU(),
        nn.Linear(_UNITS, _UNITS),
        nn.ReLU(),
        nn.Linear(_UNITS, _UNITS),
        nn.ReLU(),
        nn.Linear(_UNITS, 10),
    )
    if frozen:
        model[:-1].requires_grad_(False)
    optimizer = torch.optim.Adam([weights for weights in model.parameters() if weights.requires_grad])
    bunch = load_digits()
    images, digits = torch.tensor(bunch.data, dtype=torch.float32) / 16, torch.tensor(bunch.target)
    for epoch in range(EPOCHS):
        for batch in torch.split(torch.randperm(len(images)), _BATCH):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[batch]), digits[batch])
            torch.autograd.backward(loss)
            optimizer.step()
        place = folder / f"{epoch}"
        place.mkdir()
        write(place, model, optimizer)
        yield place
