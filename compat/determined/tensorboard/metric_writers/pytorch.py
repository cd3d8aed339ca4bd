"""Events by torch's writer."""

from resolute.tensorboard.metric_writers.pytorch import *
