"""Writes events with TensorBoard's own writer, which does not need TensorFlow."""

from __future__ import annotations

import time

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from resolute.tensorboard import get_base_path

__all__ = ["TFWriter"]


class TFWriter:
    """Writes events to the trial's directory, for scripts of older releases.

    Attributes:
        writer: The file that is written.
    """

    def __init__(self) -> None:
        self.writer = EventFileWriter(str(get_base_path({})))

    def add_scalar(self, name: str, value: float, step: int) -> None:
        """Writes one number."""
        summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
        self.writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))

    def reset(self) -> None:
        """Ends the present file; what comes later goes into another."""
        self.writer.close()
        self.writer = EventFileWriter(str(get_base_path({})))

    def flush(self) -> None:
        """Writes what is buffered."""
        self.writer.flush()
