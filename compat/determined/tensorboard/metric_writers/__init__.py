"""Writers of TensorBoard events."""

from resolute.tensorboard import BatchMetricWriter, MetricWriter

__all__ = ["BatchMetricWriter", "MetricWriter"]
