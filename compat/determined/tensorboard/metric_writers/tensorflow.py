"""Events by TensorBoard's own writer."""

from resolute.tensorboard.metric_writers.tensorflow import *
