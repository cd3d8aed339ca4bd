"""Callbacks at the events of a training."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

_log = logging.getLogger("resolute.pytorch")
UNSAVED_STATE = "_unsaved_state"
"""Name of the callback that warns of state of a trial that no checkpoint has; it has none itself."""


class PyTorchCallback:
    """Code that is called during training. Override the hooks you need; return it from ``build_callbacks``.

    All methods are called on every rank unless their description says otherwise.

    Examples:
        >>> from resolute import pytorch
        >>> class Epochs(pytorch.PyTorchCallback):
        ...     def on_training_epoch_end(self, epoch_idx):
        ...         print("epoch", epoch_idx, "has ended")
        >>> Epochs().on_training_epoch_end(3)
        epoch 3 has ended
    """

    def on_trial_startup(self, first_batch_idx: int, checkpoint_uuid: str | None) -> None:
        """Called first of all, before data loaders are built.

        Args:
            first_batch_idx: Number of the first batch to be trained.
            checkpoint_uuid: The checkpoint that training starts from, if any.
        """

    def on_training_start(self) -> None:
        """Called after a checkpoint was loaded, before the first batch."""

    def on_training_epoch_start(self, epoch_idx: int) -> None:
        """Called before the first batch of an epoch."""

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        """Called right after the last batch of an epoch."""

    def on_training_workload_end(
        self, avg_metrics: dict[str, Any], batch_metrics: list[dict[str, Any]]
    ) -> None:
        """Called after each report of training metrics.

        Args:
            avg_metrics: Means over the batches since the report before.
            batch_metrics: The metrics of each of them.
        """

    def on_validation_start(self) -> None:
        """Called before a validation."""

    def on_validation_epoch_start(self) -> None:
        """Called before the first batch of a validation by ``evaluate_batch``."""

    def on_validation_epoch_end(self, outputs: list[Any]) -> None:
        """Called after the last batch of a validation by ``evaluate_batch``.

        Args:
            outputs: What ``evaluate_batch`` returned for each batch of this rank.
        """

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        """Called after a validation.

        Args:
            metrics: Its metrics over all ranks.
        """

    def on_checkpoint_load_start(self, checkpoint: dict[str, Any] | None) -> None:
        """Called before a checkpoint is applied.

        Args:
            checkpoint: Content of ``state_dict.pth``; may be changed.
        """

    def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
        """Called before a checkpoint is written.

        Args:
            checkpoint: What will be in ``state_dict.pth``; may be changed.
        """

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        """Older name of ``on_checkpoint_write_end``."""

    def on_checkpoint_write_end(self, checkpoint_dir: str) -> None:
        """Called on the chief when the files of a checkpoint are in a directory; may add files.

        Args:
            checkpoint_dir: The directory.
        """

    def on_checkpoint_upload_end(self, uuid: str) -> None:
        """Called when a checkpoint is committed.

        Args:
            uuid: Its identifier.
        """

    def on_trial_shutdown(self) -> None:
        """Called once at the end of training, also when it fails."""

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the callback, for checkpoints."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what ``state_dict`` returned."""


class Callbacks:
    """The callbacks of one trial, by name.

    Args:
        callbacks: The return value of ``build_callbacks``.

    Raises:
        TypeError: It is not a dict of ``PyTorchCallback``.
    """

    def __init__(self, callbacks: Mapping[str, PyTorchCallback]) -> None:
        if not isinstance(callbacks, Mapping) or not all(
            isinstance(callback, PyTorchCallback) for callback in callbacks.values()
        ):
            raise TypeError("build_callbacks() must return a dict from names to PyTorchCallback")
        self._callbacks = dict(callbacks)
        self._shut_down = False
        self._epoch_start_takes_none = {
            name for name, callback in callbacks.items() if not _takes_epoch(callback)
        }
        if any(overrides(callback, "on_checkpoint_end") for callback in self):
            warnings.warn(
                "on_checkpoint_end() is deprecated: rename it to on_checkpoint_write_end()",
                FutureWarning,
                stacklevel=2,
            )
        self.want_validation_metrics = any(overrides(callback, "on_validation_end") for callback in self)
        self.want_upload_end = any(overrides(callback, "on_checkpoint_upload_end") for callback in self)

    def __iter__(self) -> Iterator[PyTorchCallback]:
        return iter(self._callbacks.values())

    def start_epoch(self, epoch_idx: int) -> None:
        """Calls ``on_training_epoch_start``, also of callbacks that take no argument."""
        for name, callback in self._callbacks.items():
            if name in self._epoch_start_takes_none:
                callback.on_training_epoch_start()  # type: ignore[call-arg]
            else:
                callback.on_training_epoch_start(epoch_idx)

    def end_write(self, directory: str) -> None:
        """Calls ``on_checkpoint_write_end``, also by its older name."""
        for callback in self:
            callback.on_checkpoint_end(directory)
            callback.on_checkpoint_write_end(directory)

    def shut_down(self) -> None:
        """Calls ``on_trial_shutdown`` of every callback once, whichever of them fail."""
        if self._shut_down:
            return
        self._shut_down = True
        failures: list[Exception] = []
        for callback in self:
            try:
                callback.on_trial_shutdown()
            except Exception as failure:  # noqa: BLE001 - raised below, when all were called
                failures.append(failure)
        if failures:
            raise failures[0]

    def state(self) -> dict[str, dict[str, Any]]:
        """Returns the state of every callback of the trial."""
        return {
            name: callback.state_dict() for name, callback in self._callbacks.items() if name != UNSAVED_STATE
        }

    def restore(self, states: Mapping[str, dict[str, Any]]) -> None:
        """Restores the state of every callback; warns if a callback with ``load_state_dict`` has none."""
        for name, callback in self._callbacks.items():
            if name in states:
                callback.load_state_dict(states[name])
            elif overrides(callback, "load_state_dict"):
                _log.warning("the checkpoint has no state of the callback %r: it starts anew", name)


def overrides(callback: PyTorchCallback, method: str) -> bool:
    """Whether a callback has a method of its own of this name."""
    return getattr(type(callback), method) is not getattr(PyTorchCallback, method)


def _takes_epoch(callback: PyTorchCallback) -> bool:
    if inspect.signature(callback.on_training_epoch_start).parameters:
        return True
    _log.warning(
        "%s.on_training_epoch_start() takes no argument: give it one, epoch_idx", type(callback).__name__
    )
    return False
