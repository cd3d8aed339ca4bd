"""Data loaders of other libraries' trainers, whose passes can be repeated after a resume."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from resolute.pytorch.data.generators import OwnGenerators
from resolute.pytorch.data.ordering import derived_seed
from resolute.pytorch.data.replay import isolated


class ReplayedLoader:
    """A loader whose passes depend only on a seed and the number of the epoch.

    Samplers, workers and the data set draw from Python, NumPy and torch in a random stream of their own,
    which does not change the random state of training. So a repeated pass yields the same batches. All
    attributes are those of the inner loader.

    Args:
        loader: The loader.
    """

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self._seed = torch.initial_seed()
        self._generators = OwnGenerators(loader)
        self._at_begin = self._generators.states()
        self._epoch = 0
        self._passes = 0
        """Of this epoch: loaders that are shorter than others begin again in its midst."""

    def begin(self, epoch: int) -> None:
        """Sets the epoch of the next pass."""
        self._epoch, self._passes = epoch, 0
        self._at_begin = self._generators.states()

    def state(self, *, between_epochs: bool) -> dict[str, Any]:
        """Returns what ``restore`` takes, so that the pass of this epoch can be gone through again.

        Args:
            between_epochs: Whether the next epoch is still to begin.
        """
        generators = self._generators.states() if between_epochs else self._at_begin
        return {"seed": self._seed, "generators": generators}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what ``state`` returned; called before ``begin``."""
        self._seed = state["seed"]
        self._generators.restore(state["generators"])

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        seed = derived_seed(self._seed, self._epoch, self._passes)
        self._passes += 1
        yield from isolated(self.loader, seed)

    def __getattr__(self, name: str) -> Any:
        if name == "loader" or name.endswith("__"):
            raise AttributeError(name)  # while it is being copied or unpickled there is no inner loader yet
        return getattr(self.loader, name)
