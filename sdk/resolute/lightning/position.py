"""The position of a Lightning training within its epoch, for state that Lightning itself does not save."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from resolute.pytorch.backends import random_state
from resolute.pytorch.data.replay import nested_samplers
from resolute.pytorch.data.replayed_loader import ReplayedLoader

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer


class EpochPosition:
    """The random state of this rank, its position in the data, and its accumulated gradients.

    Loaders that have ``state_dict`` are left to Lightning, which saves and restores them.
    """

    def __init__(self) -> None:
        self._loaders: list[ReplayedLoader] = []
        self._saved: Mapping[str, Any] | None = None

    def read(self, path: Path) -> None:
        """Reads what ``write`` wrote, for ``begin_training``; checkpoints of older releases have none."""
        if path.exists():
            self._saved = torch.load(path, weights_only=False, map_location="cpu")

    def write(self, path: Path, trainer: Trainer, module: LightningModule, *, gradients: bool) -> None:
        """Writes where this rank is.

        Args:
            path: The file.
            trainer: The trainer, in a hook after a batch.
            module: The module.
            gradients: Whether its gradients wait for a step.
        """
        progress = trainer.fit_loop.epoch_loop.batch_progress
        state = {
            "random": random_state.capture(trainer.strategy.root_device),
            "batches": 0 if progress.is_last_batch else progress.current.ready,
            "loaders": [loader.state(between_epochs=progress.is_last_batch) for loader in self._loaders],
            "gradients": [parameter.grad for parameter in module.parameters()] if gradients else [],
        }
        torch.save(state, path)

    def begin_training(self, trainer: Trainer, module: LightningModule) -> None:
        """Takes up what was read, and goes through the batches of the epoch that were trained."""
        saved, self._saved = self._saved, None
        batches = saved["batches"] if saved else 0
        self._take_loaders(trainer)
        if saved:
            for loader, state in zip(self._loaders, saved["loaders"], strict=False):
                loader.restore(state)
        if self._loaders:
            self._begin(trainer)
            fetcher: Any = trainer.fit_loop._data_fetcher  # noqa: SLF001 - what Lightning takes batches from
            iter(fetcher)
            for _ in range(batches):
                next(fetcher)
            fetcher.fetched -= batches  # Lightning adds them
        if saved:
            for parameter, gradient in zip(module.parameters(), saved["gradients"], strict=False):
                parameter.grad = None if gradient is None else gradient.to(parameter.device)
            random_state.restore(saved["random"], trainer.strategy.root_device)

    def begin_epoch(self, trainer: Trainer) -> None:
        """Says to the loaders, which may be new ones, which epoch begins."""
        if trainer.current_epoch or not self._loaders:
            self._take_loaders(trainer)
            self._begin(trainer)

    def _take_loaders(self, trainer: Trainer) -> None:
        """Puts loaders that can be gone through again in the place of the trainer's own."""
        combined: Any = trainer.fit_loop._combined_loader  # noqa: SLF001 - what the loaders are in
        loaders = list(combined.flattened)
        if any(isinstance(loader, ReplayedLoader) for loader in loaders):
            return
        if any(callable(getattr(loader, "state_dict", None)) for loader in loaders):
            self._loaders = []
            return
        self._loaders = combined.flattened = [ReplayedLoader(loader) for loader in loaders]

    def _begin(self, trainer: Trainer) -> None:
        for loader in self._loaders:
            loader.begin(trainer.current_epoch)
            for sampler in nested_samplers(loader):
                if callable(getattr(sampler, "set_epoch", None)):
                    sampler.set_epoch(trainer.current_epoch)
