"""The callbacks of one trial, called together."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from resolute.keras.callbacks import Callback
from resolute.keras.library import callback_class

_log = logging.getLogger("resolute.keras")
_KerasCallback: Any = callback_class("Callback")


class CallbackList:
    """Calls the callbacks; each gets only the hooks that it defines.

    Args:
        callbacks: The callbacks.
        model: The model.
        epoch_length: Batches of an epoch; None if unknown.

    Raises:
        AssertionError: A callback needs ends of epochs, and the length of an epoch is unknown.
    """

    def __init__(self, callbacks: Sequence[Any], model: Any, *, epoch_length: int | None) -> None:
        self._callbacks = list(callbacks)
        self._epochs = epoch_length is not None
        if not self._epochs:
            self._check_epoch_ends()
        params = {"verbose": 0, "epochs": None, "steps": epoch_length}
        for callback in self._callbacks:
            callback.set_params(dict(params))
            callback.set_model(model)

    def call(self, hook: str, *arguments: Any) -> None:
        """Calls a hook of Keras."""
        if hook in {"on_epoch_begin", "on_epoch_end"} and not self._epochs:
            return
        for callback in self._callbacks:
            getattr(callback, hook)(*arguments)

    def call_own(self, hook: str, *arguments: Any) -> None:
        """Calls a hook that only callbacks of ``resolute.keras.callbacks`` have."""
        for callback in self._callbacks:
            if isinstance(callback, Callback):
                getattr(callback, hook)(*arguments)

    def states(self) -> list[Any]:
        """Returns the state of each callback, in their order."""
        return [
            callback.get_state() if isinstance(callback, Callback) else None for callback in self._callbacks
        ]

    def restore(self, states: Sequence[Any]) -> None:
        """Restores the state of each callback."""
        if len(states) != len(self._callbacks):
            _log.warning(
                "the checkpoint has states of %d callbacks, the trial has %d: all of them begin anew",
                len(states),
                len(self._callbacks),
            )
            return
        for callback, state in zip(self._callbacks, states, strict=True):
            if isinstance(callback, Callback) and state is not None:
                callback.load_state(state)

    def for_evaluation(self) -> Any:
        """Returns a Keras callback that forwards the hooks of a validation's batches."""
        return _EvaluationHooks(self)

    def _check_epoch_ends(self) -> None:
        for callback in self._callbacks:
            if type(callback).on_epoch_end is _KerasCallback.on_epoch_end:
                continue
            name = type(callback).__name__
            assert not isinstance(callback, Callback) or type(callback).__module__ == Callback.__module__, (
                f"{name} overrides on_epoch_end(), but the length of an epoch is not known: set "
                "records_per_epoch in the config"
            )
            _log.warning("%s.on_epoch_end() is never called: set records_per_epoch in the config", name)


class _EvaluationHooks(_KerasCallback):  # type: ignore[misc, unused-ignore]  # without Keras it is Any
    """Passes the batches of a validation on to callbacks."""

    def __init__(self, callbacks: CallbackList) -> None:
        super().__init__()
        self._all = callbacks

    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        self._all.call("on_test_begin", logs)

    def on_test_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._all.call("on_test_batch_begin", batch, logs)

    def on_test_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._all.call("on_test_batch_end", batch, logs)
