"""Directories of TensorBoard events, and the writers and managers of older releases."""

from resolute.tensorboard import util
from resolute.tensorboard.batch_writer import BatchMetricWriter, MetricWriter, get_metric_writer
from resolute.tensorboard.manager import TensorboardManager, build
from resolute.tensorboard.paths import get_base_path, get_experiment_sync_path, get_sync_path

__all__ = [
    "BatchMetricWriter",
    "MetricWriter",
    "TensorboardManager",
    "build",
    "get_base_path",
    "get_experiment_sync_path",
    "get_metric_writer",
    "get_sync_path",
    "util",
]
