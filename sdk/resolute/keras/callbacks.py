"""Callbacks of trials: Keras's hooks, and further hooks of trials."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from resolute.keras.library import callback_class
from resolute.tensorboard import get_base_path

__all__ = ["Callback", "EarlyStopping", "ReduceLROnPlateau", "TensorBoard"]
_log = logging.getLogger("resolute.keras")
_Callback: Any = callback_class("Callback")
_EarlyStopping: Any = callback_class("EarlyStopping")
_ReduceLROnPlateau: Any = callback_class("ReduceLROnPlateau")
_TensorBoard: Any = callback_class("TensorBoard")

Logs = Mapping[str, Any] | None


class Callback(_Callback):  # type: ignore[misc, unused-ignore]  # without Keras it is Any
    """A Keras callback with more hooks. ``on_test_end`` gets the metrics with their ``val_`` names.

    Examples:
        >>> from resolute.keras import callbacks
        >>> class Counter(callbacks.Callback):
        ...     reports = 0
        ...     def on_train_workload_end(self, total_batches_trained, logs):
        ...         self.reports += 1
        ...     def get_state(self):
        ...         return self.reports
        ...     def load_state(self, state):
        ...         self.reports = state
        >>> Counter().get_state()
        0
    """

    def on_train_workload_begin(
        self, total_batches_trained: int, batches_requested: int | None, logs: Logs
    ) -> None:
        """Called before the batches up to the next report, validation or checkpoint are trained."""

    def on_train_workload_end(self, total_batches_trained: int, logs: Logs) -> None:
        """Called at each report of training metrics."""

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        """Called when the files of a checkpoint are written, and may add files to its directory."""

    def get_state(self) -> Any:
        """Returns the state of the callback, which is saved in checkpoints."""
        return None

    def load_state(self, state: Any) -> None:
        """Restores the state that ``get_state`` returned."""


class _AtValidations(Callback):
    """Evaluates a Keras callback at validations instead of at the ends of epochs."""

    kept: tuple[str, ...] = ()
    """Attributes of Keras's class that are its state."""
    _validations = 0

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Does nothing."""

    def on_test_end(self, logs: Logs = None) -> None:
        """Passes the metrics of a validation to Keras's callback."""
        super().on_epoch_end(self._validations, dict(logs or {}))
        self._validations += 1

    def get_state(self) -> dict[str, Any]:
        """Returns the attributes in ``kept``, and the number of validations."""
        kept = {name: getattr(self, name, None) for name in self.kept}
        return {**kept, "_validations": self._validations}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restores the attributes that ``get_state`` returned."""
        for name, value in state.items():
            setattr(self, name, value)


class EarlyStopping(_AtValidations, _EarlyStopping):  # type: ignore[misc, unused-ignore]
    """Keras's ``EarlyStopping``, evaluated at validations; its state is kept in checkpoints.

    Examples:
        >>> from resolute.keras import callbacks
        >>> callbacks.EarlyStopping(monitor="val_loss", patience=3).patience
        3
    """

    kept = ("baseline", "best", "best_weights", "best_epoch", "stopped_epoch", "wait")


class ReduceLROnPlateau(_AtValidations, _ReduceLROnPlateau):  # type: ignore[misc, unused-ignore]
    """Keras's ``ReduceLROnPlateau``, evaluated at validations; its state is kept in checkpoints.

    Examples:
        >>> from resolute.keras import callbacks
        >>> callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.5).factor
        0.5
    """

    kept = ("cooldown_counter", "wait", "best")


class TensorBoard(Callback, _TensorBoard):  # type: ignore[misc, unused-ignore]
    """Keras's ``TensorBoard``, which writes to the trial's event directory at each report of training.

    Args:
        args: Arguments of Keras's class.
        kwargs: Arguments of Keras's class; ``log_dir`` is replaced.

    Examples:
        >>> from resolute.keras import callbacks
        >>> callbacks.TensorBoard(histogram_freq=1).histogram_freq
        1
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or "log_dir" in kwargs:
            _log.warning("log_dir is replaced: events are kept with the trial")
        super().__init__(
            str(get_base_path({})), *args[1:], **{k: v for k, v in kwargs.items() if k != "log_dir"}
        )

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Does nothing."""

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Does nothing."""

    def on_train_workload_end(self, total_batches_trained: int, logs: Logs) -> None:
        """Writes the metrics of training as events."""
        super().on_epoch_end(total_batches_trained, dict(logs or {}))
