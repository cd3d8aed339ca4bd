"""Checkpoints of a trial."""

from resolute.core.checkpoint.context import CheckpointContext, DummyCheckpointContext
from resolute.core.checkpoint.downloads import DownloadMode

__all__ = ["CheckpointContext", "DownloadMode", "DummyCheckpointContext"]
