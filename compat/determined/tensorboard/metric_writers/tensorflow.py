"""Events by TensorBoard's own writer."""

import sys

import resolute.tensorboard.metric_writers.tensorflow
from resolute.tensorboard.metric_writers.tensorflow import *

sys.modules[__name__] = sys.modules["resolute.tensorboard.metric_writers.tensorflow"]
