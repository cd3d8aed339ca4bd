"""Keras's callback for TensorBoard, with its events in the trial's directory."""

from __future__ import annotations

import logging
from typing import Any

from resolute import core
from resolute.keras.library import callback_class

_log = logging.getLogger("resolute.keras")
_TensorBoard: Any = callback_class("TensorBoard")


class TensorBoard(_TensorBoard):  # type: ignore[misc, unused-ignore]  # without Keras it is Any
    """Keras's ``TensorBoard``, which writes to the trial's event directory.

    Args:
        core_context: The Core API.
        args: Arguments of Keras's class; on a cluster ``log_dir`` is replaced.
        kwargs: Arguments of Keras's class.

    Examples:
        >>> from resolute import core
        >>> from resolute.keras import TensorBoard
        >>> with core.init() as context:
        ...     TensorBoard(context, log_dir="logs").log_dir
        'logs'
    """

    def __init__(self, core_context: core.Context, *args: Any, **kwargs: Any) -> None:
        if core_context.info is not None:
            if args or "log_dir" in kwargs:
                _log.warning("log_dir is replaced: on a cluster, events are kept with the trial")
            args, kwargs = args[1:], {**kwargs, "log_dir": str(core_context.train.get_tensorboard_path())}
        super().__init__(*args, **kwargs)
