"""Warns of state of a trial that changes during training and is in no checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from torch import nn

from resolute.pytorch.checkpointing.layout import unwrap_model
from resolute.pytorch.data.held_objects import state_of_functions
from resolute.pytorch.data.stateful import is_stateful_loader
from resolute.pytorch.training.state_snapshot import StateSnapshot
from resolute.pytorch.trial.base_context import TrialContext
from resolute.pytorch.trial.callbacks import UNSAVED_STATE, PyTorchCallback, overrides

_log = logging.getLogger("resolute.pytorch")
_OURS = frozenset(
    {"models_state_dict", "optimizers_state_dict", "lr_schedulers_state_dict", "rng_state", "trainable"}
)
"""Parts of a checkpoint that callbacks do not write."""


class UnsavedStateWarning(PyTorchCallback):
    """Compares the state of a trial at each checkpoint with its state at the start of training.

    Args:
        trial: The trial.
        context: Its context.
        callbacks: Its callbacks, by name.
        kept: Objects other than models that checkpoints hold.
        schedulers: Its schedulers, whose functions are not in checkpoints.

    Attributes:
        callbacks: Its callbacks, by name.
    """

    def __init__(
        self,
        trial: Any,
        context: TrialContext,
        *,
        callbacks: Mapping[str, PyTorchCallback],
        kept: Iterable[object] = (),
        schedulers: Iterable[object] = (),
    ) -> None:
        self._trial = trial
        self._context = context
        self.callbacks = dict(callbacks)
        self._kept_objects = [held for held in kept if held is not None]
        self._schedulers = list(schedulers)
        self._data: object = None
        self._first: dict[str, Hashable] = {}
        self._names_of_state: list[set[str]] = []
        self._warned_of: set[str] = set()

    def watch_data(self, loader: object) -> None:
        """Includes the training data in the comparison, if this process reads them."""
        if not getattr(loader, "num_workers", 0) and not is_stateful_loader(loader):
            self._data = getattr(loader, "dataset", loader)

    def on_training_start(self) -> None:
        """Records the current state."""
        self._first = self._snapshot().values
        self._names_of_state = self._names()

    def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
        """Compares the state with the recorded one; warns once for each name."""
        now = self._snapshot()
        written = {name: part for name, part in checkpoint.items() if name not in _OURS}
        kept = set(_values_in(StateSnapshot(()).print_of(written)))
        changed = {
            name
            for name, value in now.values.items()
            if self._first.get(name) != value and not (isinstance(value, tuple) and value in kept)
        }
        self._warn_of(changed - self._warned_of)
        self._warned_of |= changed
        self._warn_of_structure()

    def _warn_of(self, changed: set[str]) -> None:
        if changed:
            _log.warning(
                "a pause forgets what no checkpoint holds, and this changed while training: %s. Keep what "
                "training depends on in a PyTorchCallback with state_dict() and load_state_dict()",
                ", ".join(sorted(changed)),
            )

    def _warn_of_structure(self) -> None:
        before, self._names_of_state = self._names_of_state, self._names()
        for old, new in zip(before, self._names_of_state, strict=False):
            if old != new:
                _log.warning(
                    "the state_dict() of a wrapped model has other names than before (%s): a resumed run "
                    "makes the model anew and cannot load it. Change models where they are made, in the "
                    "trial's constructor",
                    ", ".join(sorted(old ^ new)[:4]),
                )

    def _names(self) -> list[set[str]]:
        models = [unwrap_model(model) for model in self._context.models if isinstance(model, nn.Module)]
        return [set(model.state_dict()) for model in models]

    def _snapshot(self) -> StateSnapshot:
        snapshot = StateSnapshot(self._kept())
        snapshot.take("self", self._trial)
        inner = getattr(self._trial, "trial", None)
        if hasattr(inner, "build_model"):  # of the first releases' style, in an adapter
            snapshot.take("self", inner)
        snapshot.take("the training data", self._data)
        for name, callback in self.callbacks.items():
            snapshot.take(f"callback {name!r}", callback)
        for name, value in self._remembered_by_functions():
            snapshot.take(name, value)
        return snapshot

    def _remembered_by_functions(self) -> Iterator[tuple[str, object]]:
        owners = {"self": self._trial}
        owners |= {type(scheduler).__name__: scheduler for scheduler in self._schedulers}
        owners |= {
            f"callback {name!r}": one
            for name, one in self.callbacks.items()
            if not overrides(one, "state_dict")
        }
        without = (self._context, *self._context.models, *self._kept_objects)
        for name, owner in owners.items():
            others = [other for other in without if other is not owner]
            yield from state_of_functions(name, owner, without=others)

    def _kept(self) -> Iterator[int]:
        """Yields the identities of the objects in a checkpoint."""
        yield from (id(callback) for callback in self.callbacks.values() if overrides(callback, "state_dict"))
        yield from (id(wrapped.reducer) for wrapped in self._context._wrapped)
        yield from map(id, self._kept_objects)
        for model in self._context.models:
            yield from map(id, model.parameters())
            yield from (id(buffer) for buffer in model.state_dict(keep_vars=True).values())
        yield from (id(value) for value in vars(self._trial).values() if is_stateful_loader(value))


def with_unsaved_state_warning(
    trial: Any, context: TrialContext, *, kept: Iterable[object] = (), schedulers: Iterable[object] = ()
) -> tuple[Mapping[str, PyTorchCallback], UnsavedStateWarning]:
    """Returns a trial's callbacks with the one that warns of unsaved state, and that one by itself.

    Args:
        trial: The trial.
        context: Its context.
        kept: Objects other than models that checkpoints hold.
        schedulers: Its schedulers, whose functions are not in checkpoints.
    """
    callbacks: Any = trial.build_callbacks()
    if not isinstance(callbacks, Mapping):  # refused later, with a word on what it must be
        return callbacks, UnsavedStateWarning(trial, context, callbacks={}, kept=kept)
    unsaved = UnsavedStateWarning(trial, context, callbacks=callbacks, kept=kept, schedulers=schedulers)
    return {**callbacks, UNSAVED_STATE: unsaved}, unsaved


def _values_in(found: Any) -> Iterator[Hashable]:
    """Yields what values and containers in a state are compared by."""
    if isinstance(found, tuple):
        yield found
        for inner in found:
            yield from _values_in(inner)
