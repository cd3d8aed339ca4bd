"""Writes events with torch's writer."""

from __future__ import annotations

import warnings

from torch.utils.tensorboard import SummaryWriter

from resolute.tensorboard import get_base_path

__all__ = ["TorchWriter"]


class TorchWriter:
    """Writes events to the trial's directory, for scripts of older releases.

    ``context.get_tensorboard_writer()`` replaces it, or a ``SummaryWriter`` on
    ``core_context.train.get_tensorboard_path()``.

    Attributes:
        writer: A ``torch.utils.tensorboard.SummaryWriter``.
    """

    def __init__(self) -> None:
        warnings.warn(
            "TorchWriter is deprecated; use context.get_tensorboard_writer(), or a SummaryWriter on "
            "core_context.train.get_tensorboard_path()",
            FutureWarning,
            stacklevel=2,
        )
        self.writer = SummaryWriter(log_dir=str(get_base_path({})))

    def add_scalar(self, name: str, value: float, step: int) -> None:
        """Writes one number."""
        self.writer.add_scalar(name, value, step)

    def reset(self) -> None:
        """Ends the present file; what comes later goes into another."""
        self.writer.close()

    def flush(self) -> None:
        """Writes what is buffered."""
        self.writer.flush()
