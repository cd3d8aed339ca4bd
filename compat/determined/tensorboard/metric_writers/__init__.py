"""Writers of TensorBoard events."""

from typing import Any

from determined._older_names import attribute
from resolute.tensorboard import BatchMetricWriter, MetricWriter

__all__ = ["BatchMetricWriter", "MetricWriter"]


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)
