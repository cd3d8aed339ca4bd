"""The documented import path of `resolute.pytorch.checkpointing.sharded`."""

from resolute.pytorch.checkpointing.sharded import CheckpointReader, checkpoint_writer

__all__ = ["CheckpointReader", "checkpoint_writer"]
